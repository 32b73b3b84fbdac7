package chaos

var serverFaults []scenario
