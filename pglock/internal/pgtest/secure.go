package pgtest

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// rules let the superuser in as everywhere, and others by password only: over
// TLS, or through the server's socket.
const rules = `local   all postgres              trust
host    all postgres 127.0.0.1/32 trust
local   all all                   scram-sha-256
hostssl all all      127.0.0.1/32 scram-sha-256
`

// Secure starts a server that speaks TLS with the certificate and key, both PEM,
// and asks everybody but its superuser for a password.
func Secure(cert, key []byte) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	settings := Settings{"ssl": "on", "password_encryption": "scram-sha-256"}
	for name, text := range map[string][]byte{"ssl_cert_file": cert, "ssl_key_file": key, "hba_file": []byte(rules)} {
		path := filepath.Join(s.dir, name)
		settings[name] = path
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err == nil {
			err = s.user.own(path)
		}
	}
	if err == nil {
		err = s.initialize(settings)
	}
	if err == nil {
		err = s.launch()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// As returns the database's address for a user with a password, by way of addr.
// ca is a file with the certificate that the server is to be known by.
func (d *Database) As(user, password, addr, ca string) string {
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: addr, Path: "/" + d.Name,
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {ca}}.Encode()}
	return dsn.String()
}

// AsBySocket is As by way of the server's socket.
func (d *Database) AsBySocket(user, password string) string {
	return "host=" + d.Server.dir + " port=" + strconv.Itoa(d.Server.port) + " user=" + user + " password=" + password + " dbname=" + d.Name
}
