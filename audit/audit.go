// Package audit attacks mechanisms and policies, and bounds their privacy loss ε from below. This
// is also how Sotto checks itself. Begin with a PolicyAudit, or with SelfAudit, which attacks all
// that Sotto has.
//
// # Games, attacks and what they measure
//
// [Play] runs independent games of any kind, each with the target or without it by a fair coin, and
// an attack scores what it sees. [Game] is membership inference against a [Mean], noisy,
// sub-sampled or clipped, with a fixed target or a new one each time [Azize 2024, Algorithms 4, 5,
// 11 and 12]; [Reconstruction] and [Reconstruct] guess the value of one reward. The attacks on a
// mean are the likelihood ratio, exact for Bernoulli data (2.26) and Gaussian data, asymptotic
// (6.4), or with references, (2.27) and (6.5); the scalar product; [GLiR]; and a misspecified
// target. Their theory is with them ([Limit]): leakage score, advantage (6.2) and power (6.3),
// for Theorems 6.3, 6.5 and 6.7. Theorem 6.6 on sub-sampling is false: [Subsampled] is right, and
// [SubsampledPrint] what is printed.
//
// [Scores] has errors, advantage and accuracy (2.21)–(2.24), power at a fixed significance (2.25),
// ROC and AUC, each with an interval: exact ones but for the area. What differential privacy allows
// of each, (2.28)–(2.30), is [AdvantageLimit], [TradeOff], [PowerLimit] and [ReconstructionLimit].
//
// # Lower bounds on ε
//
// [Scores.Odds] lets a rule guess the bit of each game from its score, or abstain: under ε-DP right
// and wrong answers are as e^ε to 1 at most, and one exact binomial bound has all of γ. The rule is
// chosen by a tenth of the games and by those that no good rule would answer. All audits of a fixed
// number of games end with it: [PolicyAudit], [Direct], [Judge] and [SelfAudit]. Those that stop as soon
// as they know (Until, and what a SelfAudit has broken) bet against the claim instead: see sequential.go.
//
// A [Region] holds upper bounds of both errors at one or more thresholds, true together except with
// probability γ: Clopper and Pearson's, with γ/2 for each error, split over the thresholds tried.
// They are fixed before the games ([Scores.Region]), or ranks ([Scores.RegionByRank]), or chosen on
// games of their own ([Scores.Split]). ε at any number of δ and the Gaussian fit μ are read from
// it, and hold together; a [Band] has what a score can show as well. [OneRun] bounds ε by many targets
// in a single run (after Steinke, Nasr and Jagielski 2023, sharply where δ > 0; Mahloujifar, Melis and
// Chaudhuri 2024), and [Guesses] by reconstruction.
//
// An audit refutes a claim; it never proves one. The audited ε exceeds the true one with
// probability at most γ [Azize 2024, Definitions 2.34 and 2.35], whatever the attack, the score and
// the data are: only independent games and true coins are assumed. What is read on a Gaussian curve
// refutes claims of Gaussian DP only. Several attacks on the same games must share γ. A small
// audited ε may mean a private mechanism, a weak attack or too few games: without a false alarm in
// n games no test shows more than about log(n/log(2/γ)).
//
// # Policies
//
// A [PolicyAudit] plays a [Subject], a policy of the catalog or a mechanism alone, on its curator,
// on two lists that differ in one round's reward. An [Adversary] fixes a list of rewards ([View])
// or a table ([Table]), chooses what is played ([Interactive]), or feeds rewards as it goes
// ([Continual]). The worst of a list of them, with score and threshold, is searched for on games
// that are not used again, so the one test left has all of γ. The attacker sees all releases or
// plays only. The score is the log-likelihood ratio of the releases: exact for Laplace and Gaussian
// sums and for every counter where each round is released, and up to 1 % for sparse vectors, whose
// threshold's noise is integrated on a grid. The claim is what the subject's ledger was charged.
// [VectorSubject] and [MessageSubject] do the same for linear policies and for the messages of
// [Chowdhury and Zhou 2023, Algorithm 1].
//
// # The definitions, executable
//
// [Enumerate] writes down the law of a policy of few rounds, arms and rewards, and [Exact] gives
// its smallest ε, δ(ε) and ρ under each of the four models, over all neighbours and adversaries.
// [Strictness] ([Azize and Basu 2024, Proposition 1]) and [Separation] (Interactive DP does not
// imply Continual, against [Azize 2024, §3.8]) are counter-examples; [TableFromView] is [Azize
// 2024, Proposition 3.12(d)].
//
// # Self-audit
//
// A [SelfAudit] audits every mechanism and every private policy, and twins of them that are broken
// on purpose ([Fault]) while their ledgers say what honest ones say. With probability 1−γ no claim
// that is true is refuted in all of it, and every twin is, which is what it tests of the auditor: each
// is played until it is refuted.
package audit
