// Package transport plays sessions of package secagg over TCP: [Serve] for the server,
// [Join] for a client.
//
// # On the wire
//
// TLS 1.3 with the protocol name "sotto-secagg/1", and in it frames: version (1 byte), type (1
// byte), length (4 bytes, big endian), payload. A payload is read as it comes, up to what a message
// of the session can measure at most, so that a false length costs the reader nothing.
//
//	message   either way   a message of secagg
//	begin     server       the session begins: the client speaks
//	end       server       the sum is known
//	refusal   server       the session failed, or goes on without this client: a code, which stands for one of secagg's errors, and a text
//
// Both ends show certificates. The client's is made of its identity key, and tells the server who
// it is. The server's is made of its own identity key too, which the client has pinned; or it is
// one of an authority that the client believes ([ClientConfig.Roots]). TLS is not what the
// protocol's promises rest on: messages are signed, and sealed where they must be, without it. It
// keeps others from reading along (addresses they see) and from speaking at all.
//
// # A session
//
// The server waits until all enrolled clients have come, or for a while ([ServerConfig.Wait]); then
// it begins with those who are there. A client has one connection. When it breaks, or brings a
// message that the server refuses, it has vanished; nobody waits for the client, and it is told why if
// it can still hear it. A client who stays silent, reads nothing, or sends byte by byte has
// vanished at the round's deadline. None of that holds up others: every connection has its own
// goroutines and its own deadlines.
//
// When the session fails all clients are told at once, by a named error, instead of running into
// their deadlines. A client takes a refusal at its word: it can end its part, which the server can
// always do, and nothing else.
//
// What has left is spent, whether or not the session fails: [ClientConfig.Spend] and
// [ServerConfig.Spend] are where that is written down, before a client's masked message leaves and
// before clients are asked to open the sum. A failure after that is [ErrPossiblyReleased].
//
// Before a connection is a client's it has one of a bounded number of places
// ([ServerConfig.MaxPending]). Nobody waits for one: one more connection gets the place of the oldest
// of the address that has most (of IPv6, the /64). So strangers who open connections and say nothing
// close their own, and a client who loses a place to others at its address comes again by itself.
package transport
