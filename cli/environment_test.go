package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A variable that was misspelt is told of, and those of others are not.
func TestMisspeltVariable(t *testing.T) {
	for name, want := range map[string]string{"SOTTO_DATAA": "SOTTO_DATA", "SOTTO_DAT": "SOTTO_DATA",
		"SOTTO_DTAA": "SOTTO_DATA", "SOTTO_TLS_CERTS": "SOTTO_TLS_CERT", "SOTTO-LISTEN": "SOTTO_LISTEN",
		"SOTTO_SERVICE_HOST": "", "SOTTO_PORT_8080_TCP": "", "SOTTO_DB_PASSWORD": "", "SOTTO_DAY": "",
		"SOTTO_READ_ONLY": "", "SOTTO_KEY": "", "SOTTO": ""} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "7312894561")
			t.Setenv("SOTTO_READ_ONLY", "false")
			code, _, errs := sotto(t, "", "serve", "--tls-cert", "nofile", "--data", filepath.Join(t.TempDir(), "d"))
			said := strings.Contains(errs, name+" is no variable of this command (did you mean "+want+"?)")
			if code != exitUsage || said != (want != "") || want == "" && strings.Contains(errs, "did you mean") ||
				strings.Contains(errs, "7312894561") {
				t.Errorf("%d %s", code, errs)
			}
		})
	}
}

// The address that is printed can be opened, and one that a network reaches without TLS is warned of.
func TestListensEverywhere(t *testing.T) {
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false,
		"0.0.0.0:0": true, "[::]:0": true, ":0": true} {
		s := startServe(t, "--demo", "--listen", listen)
		if strings.Contains(s.banner, "[::]") || strings.Contains(s.banner, "0.0.0.0") ||
			strings.Contains(s.errs.String(), "in the clear") != warns {
			t.Errorf("%s: %s%s", listen, s.banner, s.errs.String())
		}
		s.text(200, "GET", "/livez", "")
		s.stop()
	}
}
