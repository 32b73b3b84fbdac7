package chaos

var fightFaults []scenario
