package chaos

var instanceFaults []scenario
