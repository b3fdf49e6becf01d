// Package letor makes bandits of learning-to-rank data: files in the LETOR form, as of MSLR-WEB10K,
// whose rows are clustered into arms and whose ratings are the rewards [Chowdhury and Zhou 2023, §7].
//
// Reader streams the rows, Cluster finds centres with k-means and tallies the ratings of each
// cluster, and Arms.WriteCSV writes them as logged rewards, which experiments read as instances.
// Nothing here is private: it prepares worlds for simulation.
package letor
