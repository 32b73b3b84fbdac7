package chaos

var soaks []scenario
