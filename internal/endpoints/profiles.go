package endpoints

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

const (
	// profilesRight is the nonResourceURL that it takes the right to get, as with the
	// components of Kubernetes.
	profilesRight = "/debug/pprof"
	profilesPath  = "GET " + profilesRight + "/"
)

// What a profile may take. The runtime takes one of the CPU at a time, and each
// stops or slows what the process is there for.
const (
	longestProfile = 5 * time.Minute
	profilesAtOnce = 1
)

// profiles answers below /debug/pprof/. They tell of names of rules and of what is
// in memory, and are not for everybody.
func profiles() http.Handler {
	mux := http.NewServeMux() // that of the package, which it fills itself, is served nowhere
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return limited(profilesAtOnce, patient(mux), refuse)
}

// patient lets a request take the seconds that it asks for, beyond the limits of
// the server. Without it the profile would end early, as if the client had gone:
// net/http ends a request while whose answer the time to read it passes. The time
// to write is prolonged by pprof, by those seconds.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.FormValue("seconds"))
		if r.FormValue("seconds") == "" {
			seconds, err = 30, nil // that is pprof's own, for a profile of the CPU
		}
		// pprof takes what is no whole number, and 0, for 30.
		if limit := int(longestProfile.Seconds()); err != nil || seconds < 1 || seconds > limit {
			answer(w, http.StatusBadRequest, fmt.Sprintf("seconds is a whole number from 1 to %d", limit))
			return
		}
		end := time.Now().Add(time.Duration(seconds)*time.Second + readTimeout)
		if err := http.NewResponseController(w).SetReadDeadline(end); err != nil {
			answer(w, http.StatusInternalServerError, "this connection cannot wait for a profile")
			return
		}
		next.ServeHTTP(w, r)
	})
}
