package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/internal/live"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// lintCluster is what lint asks of a live cluster: which resources it serves,
// and their schemas.
type lintCluster struct {
	asked   bool
	cluster clusterFlags
}

func (f *lintCluster) add(cmd *cobra.Command) {
	f.cluster.add(cmd)
	cmd.Flags().BoolVar(&f.asked, "cluster", false, "know resources and their schemas from the live cluster, instead of the built-in ones and CRD manifests")
	cmd.MarkFlagsMutuallyExclusive("cluster", "crds")
}

// check refuses to name a cluster that would not be asked.
func (f *lintCluster) check() error {
	if !f.asked && (f.cluster.kubeconfig != "" || f.cluster.context != "") {
		return &exitError{exitUsage, errors.New("--kubeconfig and --context are for --cluster")}
	}
	return nil
}

// answerTimeout is how long the cluster may take for one answer.
const answerTimeout = 30 * time.Second

// known connects to the cluster.
func (f *lintCluster) known(ctx context.Context) (lint.Known, error) {
	config, err := f.cluster.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = answerTimeout
	cluster, err := live.Connect(ctx, config)
	if err != nil {
		return nil, &exitError{exitCluster, err}
	}
	return live.Known{Cluster: cluster}, nil
}
