package chaos

var lifecycleFaults []scenario
