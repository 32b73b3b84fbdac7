package main

import "github.com/spf13/cobra"

func newBuiltin(streams) *cobra.Command {
	return &cobra.Command{Use: "builtin", Short: "List or print the built-in rules", Hidden: true}
}
