//go:build !unix

package serve

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
