package pgtest

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy forwards TCP connections to a server, counts what passes, and breaks
// the network when it is told to. Close must be called.
type Proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	delay atomic.Int64 // of each chunk, in each direction

	mu     sync.Mutex
	open   chan struct{} // closed while bytes pass; else they wait for ever, acknowledged
	closed bool
	refuse bool
	links  map[*link]bool
	wire   Wire
}

// link is one connection from a client through the proxy.
type link struct{ client, server net.Conn }

// NewProxy starts a proxy in front of the server at target, host and port.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: make(map[*link]bool), open: make(chan struct{})}
	close(p.open)
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the proxy's host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		k := &link{client, server}
		p.mu.Lock()
		if p.closed || p.refuse {
			p.mu.Unlock()
			k.reset()
			continue
		}
		p.links[k] = true
		p.wire.Conns++
		p.mu.Unlock()
		p.wg.Go(func() { p.serve(k) })
	}
}

// serve forwards both ways until either end is gone.
func (p *Proxy) serve(k *link) {
	w := &watcher{proxy: p}
	var both sync.WaitGroup
	both.Go(func() { p.forward(k.server, k.client, w.fromClient); k.close() })
	both.Go(func() { p.forward(k.client, k.server, w.fromServer); k.close() })
	both.Wait()
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
}

func (p *Proxy) forward(to io.Writer, from io.Reader, see func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if d := time.Duration(p.delay.Load()); d > 0 {
				time.Sleep(d)
			}
			if !p.pass() {
				return
			}
			see(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			p.pass() // a black hole swallows the end of a connection, too
			return
		}
	}
}

// pass waits while the proxy is a black hole. It reports false if it is closed.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	<-open
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

// Delay makes everything that passes late by d, each way.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// BlackHole lets nothing pass, either way, though both ends find their peer's
// kernel well. Heal ends it.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default:
	}
}

// Heal ends BlackHole, and what Drop has said of new connections.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// Drop resets all connections and, until Heal, new ones.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
	for k := range p.links {
		k.reset()
	}
}

// Close resets all connections and ends the proxy.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for k := range p.links {
		k.reset()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.Heal()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (k *link) close() {
	_ = k.client.Close()
	_ = k.server.Close()
}

// reset closes both connections with RST.
func (k *link) reset() {
	for _, conn := range []net.Conn{k.client, k.server} {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	k.close()
}
