package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	var o options
	var platforms string
	flag.StringVar(&o.binaries, "binaries", "dist/bin", "the folder with linux_amd64/rectifier and so on")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "what the image is for")
	flag.StringVar(&o.version, "version", "", "the version of the binaries")
	flag.StringVar(&o.name, "name", "ghcr.io/rectifier-dev/rectifier", "the name of the image, without a tag")
	output := flag.String("output", "", "the archive to write")
	flag.Parse()
	o.platforms = strings.Split(platforms, ",")

	digest, err := writeImage(o, *output)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Printf("%s\n%s:%s@%s\n", *output, o.name, tag(o.version), digest)
}

// writeImage writes the archive and returns the digest of the index in it.
func writeImage(o options, output string) (string, error) {
	if output == "" || o.version == "" {
		return "", errors.New("--output and --version are needed")
	}
	index, err := build(o)
	if err != nil {
		return "", err
	}
	if err := writeArchive(output, index); err != nil {
		return "", fmt.Errorf("writing %s: %w", output, err)
	}
	digest, err := index.image.Digest()
	if err != nil {
		return "", err
	}
	return digest.String(), nil
}
