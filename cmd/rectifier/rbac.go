package main

import "github.com/spf13/cobra"

func newRBAC(streams) *cobra.Command {
	return &cobra.Command{Use: "rbac", Short: "Print the least permissions that rules need", Hidden: true}
}
