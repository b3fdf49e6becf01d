// Command sotto simulates differentially private bandits: experiments in, results a researcher can
// trust, plot and publish out. Its commands are those of package cli.
package main

import "github.com/sotto-dp/sotto/cli"

func main() { cli.Main() }
