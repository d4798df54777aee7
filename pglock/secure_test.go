package pglock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dbx-tools/processlock"
	"github.com/dbx-tools/processlock/pglock"
	"github.com/dbx-tools/processlock/pglock/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// certificate makes one for the loopback interface that vouches for itself.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "pgtest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	require.NoError(t, err)
	secretDER, err := x509.MarshalPKCS8PrivateKey(secret)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secretDER})
}

// secureBed makes a bed on a server that wants TLS and passwords, with a role
// app. ca is a file with its certificate.
func secureBed(t *testing.T) (b *bed, ca string) {
	t.Helper()
	t.Parallel()
	cert, key := certificate(t)
	ca = filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(ca, cert, 0o600))
	server, err := pgtest.Secure(cert, key)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	require.NoError(t, server.Exec(t.Context(), "create role app login password 'secret'"))
	return bedOn(t, server), ca
}

// What a Locker does is the same however its pool connects: over TLS, with a
// password, through a socket of the file system.
func TestOtherWaysToConnect(t *testing.T) {
	dsns := map[string]func(b *bed, ca string) (dsn, wrong string){
		"tls": func(b *bed, ca string) (dsn, wrong string) {
			addr := b.db.Server.Addr()
			return b.db.As("app", "secret", addr, ca), b.db.As("app", "wrong", addr, ca)
		},
		"socket": func(b *bed, ca string) (dsn, wrong string) {
			return b.db.AsBySocket("app", "secret"), b.db.AsBySocket("app", "wrong")
		},
	}
	for name, dsn := range dsns {
		t.Run(name, func(t *testing.T) {
			b, ca := secureBed(t)
			good, bad := dsn(b, ca)
			l := pglock.New(b.pool(good), pglock.Options{Slice: 20 * time.Millisecond})
			b.closes(l)
			refused := pglock.New(b.pool(bad), pglock.Options{})
			b.closes(refused)
			assert.ErrorContains(t, b.refused(refused.WithLock(t.Context(), "k", nop)), "28P01")

			require.NoError(t, l.WithConn(t.Context(), "k", func(_ context.Context, conn *pgx.Conn) error {
				assert.Equal(t, "app", ask[string](b, conn, "select session_user::text"))
				assert.Equal(t, name == "tls", ask[bool](b, conn, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
				assert.Equal(t, name == "socket", ask[bool](b, conn, "select inet_client_addr() is null"))
				return nil
			}))
			b.exchanges(l)
			b.waitsAndCancels(l)
			for name, lock := range ways {
				b.losesSession(l, name, lock)
			}
		})
	}
}

// exchanges interrupts the watch of a hold again and again with what else there
// is to do on its session.
func (b *bed) exchanges(l *pglock.Locker) {
	b.Helper()
	watched := b.hold(l, "watched")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				key := strconv.Itoa(i) + "." + strconv.Itoa(n)
				assert.NoError(b, l.WithLock(b.Context(), key, nop))
				if n%10 == 0 {
					time.Sleep(2 * unwatched) // so that it is watched again
				}
			}
		})
	}
	wg.Wait()
	require.NoError(b, watched.ctx.Err())
	watched.ok()
}

// unwatched is the age of a hold from which on it is watched.
const unwatched = 10 * time.Millisecond

// waitsAndCancels waits for a key for several slices, with callers who leave.
func (b *bed) waitsAndCancels(l *pglock.Locker) {
	b.Helper()
	other := b.session()
	b.take(other, "busy")
	b.refused(l.WithLock(b.Context(), "busy", nop, processlock.MaxWait(100*time.Millisecond)), processlock.ErrWaitTimeout)
	cancelWaits(b, l, "busy", 80)
	waits := b.start(b.Context(), l, "busy").queued(1)
	b.unlock(other, "busy")
	waits.runs().ok()
}

// losesSession ends the session under a hold, which is to be told.
func (b *bed) losesSession(l *pglock.Locker, name string, lock func(*pglock.Locker, context.Context, any, func(context.Context) error) error) {
	b.Helper()
	held := b.startWith(context.Background(), "k", func(ctx context.Context, fn func(context.Context) error) error {
		return lock(l, ctx, "k", fn)
	}).runs()
	time.Sleep(young)
	begin := time.Now()
	b.terminate(b.held("k")...)
	took := held.loses(begin, patience/2)
	b.Logf("%s: told after %v", name, took)
	assert.ErrorIs(b, held.let().returns(), processlock.ErrLost)
	require.NoError(b, lock(l, b.Context(), "k", nop), "the Locker works on")
}

// Under TLS, too, silence tells.
func TestBlackHoleUnderTLS(t *testing.T) {
	b, ca := secureBed(t)
	p := b.proxy()
	l := pglock.New(b.pool(b.db.As("app", "secret", p.Addr(), ca)), pglock.Options{})
	b.closes(l)
	defer p.Heal()
	held := b.hold(l, "k")
	p.Wire()
	pings := 0
	b.eventually(func() bool { pings += p.Wire().RoundTrips; return pings > 0 }, "nobody pings")
	require.NoError(t, held.ctx.Err(), "it was answered")
	begin := time.Now()
	p.BlackHole()
	t.Logf("told after %v", held.loses(begin, patience/2))
	assert.ErrorIs(t, held.let().returns(), processlock.ErrLost)
	p.Heal()
	require.NoError(t, l.WithLock(t.Context(), "k", nop))
}
