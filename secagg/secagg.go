// Package secagg sums the messages of clients so that the server learns the sum and nothing else: a
// single-server protocol of the kind of Bonawitz et al. ("Practical secure aggregation for
// privacy-preserving machine learning", CCS 2017) on the sparse graph of Bell et al. ("Secure
// single-server aggregation with (poly)logarithmic overhead", CCS 2020). It is made for the batches
// of a bandit: short vectors over the integers modulo m ≤ 2^64, many clients, some of whom vanish.
// Begin with a Session, and with NewServer and NewClient, or with Local, which plays all of them.
//
// # The protocol
//
// Every client masks its message with a mask of its own and with one mask for each neighbour in a
// graph of degree k; the pairwise masks cancel in the sum. So that the server can take off what
// does not cancel, it shares two secrets among its neighbours (Shamir, threshold t): the seed of
// its own mask, opened if its masked message came, and the key of its pairwise masks, opened if it
// did not. Never both: together they unmask the client.
//
//	round         client → server                         server → client
//	advertise     mask key, channel key, signed           the graph's shape, the neighbours' keys
//	share         a sealed pair of shares per neighbour   the pairs sealed for it
//	mask          message + own mask ± pairwise masks     who survives
//	consistency   per surviving neighbour a tag on them   the tags made for it             (malicious server only)
//	unmask        per neighbour one share
//
// Against a malicious server the masked message also carries a tag for each neighbour whose mask is
// in it, which the server passes on with the survivors.
//
// X25519 for agreement, HKDF-SHA256 for derivation, AES-256 in counter mode for masks and with
// GCM for shares, HMAC-SHA256 for tags, Ed25519 for signatures, Shamir over a prime field of 128
// bits: all from the standard library and github.com/cloudflare/circl. [Client] and [Server] are
// state machines without input or output; a transport carries their messages: [Local] in memory,
// package transport over TCP. Every message is signed by its sender's identity key, which the
// receiver has pinned.
//
// Messages are vectors of integers modulo m. Noise is the caller's: each client adds its share of
// noise before it hands its message over, calibrated so that the shares of [Session.HonestMin]
// clients are noise enough. A corrupt client adds none.
//
// # What is promised
//
// The adversary is the server together with at most c = ⌊γ·Enrolled⌋ clients ([Session.Corrupt]),
// chosen before the graph is drawn from those who are enrolled. It also decides which n of them
// take part: the corrupt ones may all come, and honest ones be kept away. So c is counted among the
// enrolled, whose number is in the session that every client has and checks, and never among the n
// that a server announces. A graph on which n clients are not safe from c is refused
// ([Session.Graph]). With probability at least 1 − 2^-40 over the draw of the graph, and up to the
// computational security of the primitives (128 bits; the shared secrets have 128 bits each):
//
// Against a semi-honest server ([SemiHonest]), one that follows the protocol and keeps all it sees:
//   - it learns the sum of the survivors' messages, who took part and who vanished when, and
//     nothing else. The messages of corrupt clients are known to it, so it learns the sum over the
//     honest survivors;
//   - at least NMin messages are in the sum, NMin − c of them honest;
//   - t−1 colluding neighbours learn nothing of a client's secrets; [Choose] takes t above the
//     number of corrupt neighbours that any client has.
//
// Against a malicious server ([Malicious]), one that tells each client what it likes about who
// takes part and who vanished, delivers, delays, drops and repeats what it likes, but draws the
// graph as it should:
//   - it never gets both secrets of an honest client;
//   - an honest message is only ever opened within a sum that holds the messages of at least t − a
//     further honest clients, a being the most corrupt neighbours that a client can have;
//   - with [Session.Complete] (and below 50 clients) all are neighbours: the draw of the graph
//     needs no trust, and at least NMin − c honest messages are in any sum;
//   - a server that swaps a client's keys is caught by its neighbours, who know its identity key.
//
// # Why
//
// A client's secrets are shared as it was told: k seats, threshold t. Of its neighbours at most a
// are corrupt, whoever takes part: a = min(c, k) in the complete graph; in the sparse one k
// neighbours are drawn from n of whom at most c are corrupt, and nobody has more than a corrupt ones
// but with what 2^-40 leaves beside the honest graph falling apart: by the crowds of corrupt clients
// that begin somewhere on the circle, which are fewer than the clients in one. It refuses t ≤ a, and
// against a malicious server 2t ≤ k + a; the numbers are its own, whatever others were told.
//
// Semi-honest: a ≤ t−1 shares say nothing, and honest neighbours open one share each, of the secret
// that the server asks all of them for. In the sparse graph what is opened is the sum over all
// honest survivors only if their graph hangs together, which ruleA sees to for c corrupt and ⌊δn⌋
// who vanish: with fewer survivors than n − ⌊δn⌋ nothing is opened.
//
// Malicious:
//
//  1. An honest neighbour opens one share of the client in its life, a corrupt one may open both. That is
//     k + a < 2t shares: not t of either kind.
//  2. An honest client who opens shares has t tags of neighbours, made under keys that the
//     server does not have, that they were told the same survivors and count the client in. t − a of
//     them are honest, and never open a share of its key. k − (t − a) < t shares are left: its
//     key stays closed.
//  3. An honest client opens a share of a survivor's seed only if the survivor has told it, by a tag, that
//     their mask is in the message. So if u's message is opened, t − a honest v have opened shares
//     of its seed; each has a mask with the client that only a key of theirs (closed, by 2) would take
//     off: the messages of all these v are in the same sum.
//  4. In the complete graph the tag of 3 also binds who sits where. Two honest clients of one
//     circle who open shares were told the same survivors: else there were two groups of t − a' + 1
//     honest clients with no member in common, a' of the circle being corrupt, and 2t ≤ k + a'. A
//     client v who opens shares has n_min − 1 tags of survivors of its circle. Of such a survivor
//     j, if honest, the key stays closed as well: only those outside of v's group open it, and they
//     are k + a' − t < t. So the messages of v and all these j, at least n_min − c of them honest,
//     are in the same sum.
//  5. In the sparse graph a client takes the server's word for survivors beyond its neighbours, so
//     3 is all there is: [Session.HonestMin].
//
// [Local.TwoStories] plays what 1 is about. With t chosen for the n = 20 that are announced, of 40
// enrolled, 8 of them corrupt, it reads a message.
//
// # Correctness
//
// To honest clients and a semi-honest server that the result is right: at most one client in 2^20
// runs fails for want of shares as long as at most ⌊δn⌋ vanish; a failure is a named error, never a
// wrong sum. Shares that do not fit the secret that a client committed to are noticed.
//
// # What is not promised
//
//   - That messages are honest. A client may send any vector modulo m: no range is proved. (A
//     corrupt client may also send wrong masks, and so spoil the sum without being found out; it
//     could as well send a wild message.) Where that matters, use two servers and Prio3.
//   - That the run succeeds. The server can always refuse, and more than ⌊δn⌋ who vanish, or
//     corrupt neighbours who share rubbish, may end it.
//   - Model inconsistency (Pasquini, Francati, Ateniese, CCS 2022): a server that gives clients
//     different parameters so that one contribution stands out. Answered as far as clients can: all
//     that they were told is in [Session], whose digest enters every mask. Clients who were told
//     different things share no masks, and the session fails. A server that tells all the same
//     harmful thing is not stopped.
//   - Sybils. γ is an assumption about who is admitted. A server that enrols clients of its
//     own passes any γ.
//   - A malicious server's draw of the graph, unless the graph is complete: it could surround a
//     client with corrupt neighbours.
//   - Repeated sums over cohorts that change slowly leak differences (So et al., 2021). The noise
//     answers that, and its ledger; this package does not count sums: aggregate.Journal does, and
//     remembers what has left.
//   - The sum itself: without noise it is not private, and a sparse vector shows who is alone
//     in a coordinate.
//   - Anonymity of taking part, timing, and the number of clients.
//   - Forward secrecy of identity keys is not needed: they sign and do not encrypt. Session keys
//     live in memory for one session.
//   - On processors without AES instructions the standard library's AES is not constant time.
//     Wiping of memory is best effort.
//
// # What it costs
//
// With γ = δ = 0.1 and one value of 64 bits, on one core at 2.5 GHz, a tenth vanishing after
// sharing: a semi-honest session of 1000 clients (k = 46) takes the server 0.6 s of processor time,
// a client 6 ms, 3.4 KB up and 8.7 KB down. With γ = 0.05 (k = 34) a client's share is 4 ms, 2.7 KB
// and 6.5 KB. Against a malicious server k doubles (90 at 1000 clients): 1.0 s, 11 ms, 9 KB up and
// 19 KB down. A client's work grows with k, which grows with log n; BenchmarkSession has the
// figures. Most of it is X25519, 2k times, and the verification of neighbours' keys.
//
// # Using it safely
//
// Enrolled is the number of all who could take part, and γ the share of them who may be corrupt. It
// is the enrolment that decides, and whoever writes the session, not its server.
//
// Draw a fresh [Session.ID] for every sum ([NewID]) and keep one [Used] for a client's life: in one
// session, two messages of a client under the same masks would show their difference. Pin identity
// keys from enrolment and never from the session's server. [Client.Step] and [Server.Step] return
// errors that wrap one of the named ones; [ErrEquivocation] and [ErrBothShares] are of a server
// that cheats, and the others may be of a message that got lost.
package secagg
