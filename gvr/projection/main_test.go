package projection

import (
	"os"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }
