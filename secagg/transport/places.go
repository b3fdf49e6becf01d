package transport

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/sotto-dp/sotto/internal/network"
)

// places are for connections of which nobody knows yet whose they are. Nobody waits for one: when
// all are taken, a new connection gets that of the oldest of the network that has most. So whoever
// opens many connections loses their own, and keeps out nobody who is somewhere else.
type places struct {
	most int

	mu     sync.Mutex
	taken  []*place // oldest first
	by     map[netip.Prefix]int
	closed bool
}

// place is one connection's.
type place struct {
	conn net.Conn
	from netip.Prefix  // zero if it is from no address of the internet
	lost chan struct{} // closed when another connection has got it
}

func newPlaces(most int) *places { return &places{most: most, by: map[netip.Prefix]int{}} }

// take gives a connection a place. It is nil after close.
func (p *places) take(conn net.Conn) *place {
	from, _ := network.Of(conn.RemoteAddr().String())
	one := &place{conn: conn, from: from, lost: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.taken = append(p.taken, one)
	p.by[from]++
	if len(p.taken) > p.most {
		p.clear()
	}
	return one
}

// free gives a place up, if there is one, for what cannot be had otherwise.
func (p *places) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) > 0 {
		p.clear()
	}
}

// clear closes the oldest connection of the network that has most. The lock is held.
func (p *places) clear() {
	most := 0
	for _, n := range p.by {
		most = max(most, n)
	}
	i := slices.IndexFunc(p.taken, func(one *place) bool { return p.by[one.from] == most })
	one := p.taken[i]
	p.remove(i)
	close(one.lost)
	one.conn.Close()
}

// leave gives a place back that may be lost already.
func (p *places) leave(one *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.taken, one); i >= 0 {
		p.remove(i)
	}
}

func (p *places) remove(i int) {
	from := p.taken[i].from
	p.taken = slices.Delete(p.taken, i, i+1)
	if p.by[from]--; p.by[from] == 0 {
		delete(p.by, from)
	}
}

// close closes all connections that have a place, and those that ask for one later.
func (p *places) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, one := range p.taken {
		one.conn.Close()
	}
}
