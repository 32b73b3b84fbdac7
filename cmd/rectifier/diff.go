package main

import "github.com/spf13/cobra"

func newDiff(streams) *cobra.Command {
	return &cobra.Command{Use: "diff", Short: "Show what rules would change", Hidden: true}
}
