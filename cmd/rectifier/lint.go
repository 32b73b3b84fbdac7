package main

import "github.com/spf13/cobra"

func newLint(streams) *cobra.Command {
	return &cobra.Command{Use: "lint", Short: "Find what is wrong with rules before they run", Hidden: true}
}
