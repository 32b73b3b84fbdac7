package chaos

var webhookFaults []scenario
