package chaos

var networkFaults []scenario
