// Package audit attacks mechanisms and bounds their privacy loss from below.
//
// An audit has three parts. A game ([Game], [Play], [Reconstruction]) runs a mechanism again and again, with and without a target, and an
// attack scores each output. [Scores] says how well the scores tell the two apart: errors, advantage, power, ROC and AUC, each with an interval.
// A [Region] turns the scores into what no differentially private mechanism could do, and so into a lower bound on ε.
//
// # What an audit shows
//
// An audit refutes a claim; it never proves one. At confidence 1−γ the audited ε exceeds the true one with probability at most γ (000
// Definitions 2.34 and 2.35), whatever the attack, the score and the data are: only independent games and true bits are assumed. A small audited ε
// may mean a private mechanism, or a weak attack, or too few games: with no false alarm in n games no audit can show more than about log(n/log(2/γ)).
// Where an audit depends on more than that, as the Gaussian readings do, it is said there.
//
// # Attacks on a mean
//
// The mechanisms of 000 Chapter 6 are the empirical mean ([Mean]) with noise, sub-sampling and clipping. The attacks are the likelihood ratio where
// it is known exactly, its asymptotic form, their empirical forms with reference points, and the scores that others use. Beside each attack is its
// theory: the leakage score, the advantage and the power that it tends to.
package audit
