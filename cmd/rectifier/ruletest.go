package main

import "github.com/spf13/cobra"

func newTest(streams) *cobra.Command {
	return &cobra.Command{Use: "test", Short: "Run the tests of rules", Hidden: true}
}
