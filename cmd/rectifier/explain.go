package main

import "github.com/spf13/cobra"

func newExplain(streams) *cobra.Command {
	return &cobra.Command{Use: "explain", Short: "Tell what each rule makes of one object, and why", Hidden: true}
}
