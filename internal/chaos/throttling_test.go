package chaos

var throttlingFaults []scenario
