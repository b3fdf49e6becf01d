//go:build js && wasm

// Command wasm is the explorer in a browser's worker: it gives JavaScript the functions of an
// object, sotto, each of which answers at once. One worker plays the runs that it is told to, and
// one of them makes the pictures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"syscall/js"
	"unsafe"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/sim"
)

// A session is the request that is played.
type session struct {
	e       *explore.Explorer
	samples [][]float64 // by cell, of the runs that are here
	room    sim.Result
	out     []float64
}

func main() {
	// A collection stops the one thread there is, and live data are a few megabytes.
	debug.SetGCPercent(800)
	s := &session{}
	o := js.Global().Get("Object").New()
	for name, f := range map[string]func([]js.Value) (any, error){
		"offers":  func([]js.Value) (any, error) { return explore.Offers(catalog.Catalog{}), nil },
		"open":    s.open,
		"put":     s.put,
		"picture": s.picture,
	} {
		o.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) any {
			v, err := f(args)
			return answer(v, err)
		}))
	}
	o.Set("play", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b, err := s.play(args)
		if err != nil {
			return answer(nil, err)
		}
		return b
	}))
	js.Global().Set("sotto", o)
	js.Global().Call("sottoReady")
	select {}
}

// answer is JSON: a value, or what is wrong and in which field.
func answer(v any, err error) string {
	if err != nil {
		v = explore.Refusal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return `{"error":"` + strings.ReplaceAll(err.Error(), `"`, `'`) + `"}`
	}
	return string(b)
}

// open begins a request: a link, and the text of its log or null.
func (s *session) open(args []js.Value) (any, error) {
	r, err := explore.Parse(args[0].String())
	if err != nil {
		return nil, err
	}
	var log io.Reader
	if !args[1].IsNull() {
		log = strings.NewReader(args[1].String())
	}
	e, err := explore.New(catalog.Catalog{}, r, log)
	if err != nil {
		return nil, err
	}
	s.e, s.samples = e, make([][]float64, e.Cells())
	return struct {
		Cells  int `json:"cells"`
		Points int `json:"points"`
		Next   int `json:"next"`
	}{e.Cells(), e.Points(), e.After(0)}, nil
}

var errClosed = errors.New("no request is open")

// play plays n runs of a cell from a first one on, and returns their regrets.
func (s *session) play(args []js.Value) (js.Value, error) {
	if s.e == nil {
		return js.Value{}, errClosed
	}
	n := args[2].Int() * s.e.Points()
	if cap(s.out) < n {
		s.out = make([]float64, n)
	}
	s.out = s.out[:n]
	if err := s.e.Play(context.Background(), args[0].Int(), args[1].Int(), &s.room, s.out); err != nil {
		return js.Value{}, err
	}
	b := js.Global().Get("Uint8Array").New(8 * n)
	js.CopyBytesToJS(b, bytes(s.out))
	return b, nil
}

// put takes regrets of a cell from a first run on.
func (s *session) put(args []js.Value) (any, error) {
	if s.e == nil {
		return nil, errClosed
	}
	i, from, n := args[0].Int(), args[1].Int()*s.e.Points(), args[2].Get("length").Int()/8
	for len(s.samples[i]) < from+n {
		s.samples[i] = append(s.samples[i], 0)
	}
	js.CopyBytesToGo(bytes(s.samples[i][from:from+n]), args[2])
	return true, nil
}

// picture is what is to be drawn after so many runs of each cell.
func (s *session) picture(args []js.Value) (any, error) {
	if s.e == nil {
		return nil, errClosed
	}
	return s.e.Picture(s.samples, args[0].Int())
}

// bytes are the doubles' own, which WebAssembly has in the order of JavaScript's typed arrays.
func bytes(x []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x))
}
