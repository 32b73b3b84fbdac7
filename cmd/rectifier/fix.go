package main

import "github.com/spf13/cobra"

func newFix(s streams) *cobra.Command { return &cobra.Command{Use: "fix"} }
