// Package network says which network an address of the internet is in, for what is shared out by it.
package network

import (
	"net/netip"
	"strings"
)

// Of is the network of an address, with or without a port: of IPv4 the address alone, of IPv6 its
// /64, since whoever has one address there has all of them. False says that it is no address.
func Of(text string) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(text)
	a := at.Addr()
	if err != nil {
		if a, err = netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err != nil {
			return netip.Prefix{}, false
		}
	}
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 32
	}
	p, err := a.WithZone("").Prefix(bits)
	return p, err == nil
}
