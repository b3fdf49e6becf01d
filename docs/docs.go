// Package docs has the documents that somebody in front of a live service asks for, as they are in the repository: a service
// may be where there is no network. What sotto and the service print by themselves (commands, policies, routes) is left out.
package docs

import "embed"

// Files are the documents, in Markdown, by the names that links between them have.
//
//go:embed README.md abtest.md adding-a-policy.md certificate.md choose.md clients.md contextual.md declaration.md
//go:embed design.md dpia.md explorer.md gallery.md guide.md inference.md migrating.md operations.md privacy.md secagg.md serve.md stability.md timing.md trial.md
//go:embed two-servers.md
var Files embed.FS
