package transport_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// A server and four clients, who would be on four machines.
func Example() {
	serverPublic, serverKey, _ := ed25519.GenerateKey(nil)
	public, private := map[uint32]ed25519.PublicKey{}, map[uint32]ed25519.PrivateKey{}
	for id := range uint32(4) {
		public[id], private[id], _ = ed25519.GenerateKey(nil)
	}
	id, _ := secagg.NewID(nil)
	session := secagg.Session{ID: id, Experiment: "doses", Modulus: 1000, Grid: 10, Length: 1,
		Enrolled: 4, NMin: 3, Noise: "none", Mode: secagg.SemiHonest, Delta: 0.25}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	var clients sync.WaitGroup
	for id := range uint32(4) {
		clients.Go(func() {
			err := transport.Join(context.Background(), listener.Addr().String(), transport.ClientConfig{
				Protocol: secagg.ClientConfig{Session: session, ID: id, Identity: private[id],
					Server: serverPublic, Pinned: secagg.PinnedKeys(public)},
			}, []uint64{uint64(10 * id)})
			if err != nil {
				fmt.Println(id, err)
			}
		})
	}
	result, err := transport.Serve(context.Background(), listener, transport.ServerConfig{
		Protocol: secagg.ServerConfig{Session: session, Identity: serverKey, Clients: public,
			Timeout: 10 * time.Second},
	})
	clients.Wait()
	fmt.Println(result.Sum, result.Survivors, err)
	// Output: [60] [0 1 2 3] <nil>
}
