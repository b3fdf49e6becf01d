package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sotto-dp/sotto/live/serve"
)

// What a metric reveals is the end of its help. Everything that moves with reports tells who
// reported, which is what a click is: private are also sizes of queues, times of commits, statuses
// of answers and what the process uses.
const (
	tellsUnits = " Public: tells of decisions and releases alone."
	tellsClock = " Tells of clocks alone."
	tellsWho   = " Private: tells that rewards were reported, and when."
)

// Metrics are the private metrics of a service. One value is for one serve.Engine, as its Meter,
// and for its Handler, which shows it to keys with the scope metrics.
type Metrics struct {
	rewards  *prometheus.CounterVec
	requests *prometheus.HistogramVec
	commits  prometheus.Histogram
	failed   prometheus.Counter
	newUnits *prometheus.CounterVec
	own      []prometheus.Collector
}

// NewMetrics returns metrics at zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		rewards: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sotto_rewards_total",
			Help: "Rewards that were answered, by status; accepted includes those that came again." + tellsWho},
			[]string{"experiment", "status"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sotto_request_seconds",
			Help:    "How long requests took, by route and status." + tellsWho,
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}},
			[]string{"route", "status"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sotto_commit_seconds",
			Help:    "How long the store took to make commits durable." + tellsWho,
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "sotto_commit_failures_total",
			Help: "Commits that failed, after each of which the store is opened anew." + tellsWho}),
		newUnits: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sotto_new_units_total",
			Help: "Browsers without a unit: those that were given a cookie with their first decision, and those " +
				"that were refused since too many came from their address." + tellsUnits}, []string{"answer"}),
	}
	m.own = []prometheus.Collector{m.rewards, m.requests, m.commits, m.failed, m.newUnits}
	for _, answer := range []string{"given", "refused"} {
		m.newUnits.WithLabelValues(answer)
	}
	return m
}

// Rewarded implements serve.Meter.
func (m *Metrics) Rewarded(experiment string, s serve.Status, n int) {
	m.rewards.WithLabelValues(experiment, string(s)).Add(float64(n))
}

// Committed implements serve.Meter.
func (m *Metrics) Committed(took time.Duration, err error) {
	m.commits.Observe(took.Seconds())
	if err != nil {
		m.failed.Inc()
	}
}

// timed measures a route.
func (m *Metrics) timed(route string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, out := time.Now(), &answered{ResponseWriter: w, status: http.StatusOK}
		h(out, r)
		m.requests.WithLabelValues(route, strconv.Itoa(out.status)).Observe(time.Since(from).Seconds())
	}
}

// An answered response remembers its status.
type answered struct {
	http.ResponseWriter
	status int
	silent bool // it leaves no line in the log
}

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// public is what everybody may know, of the experiments that a caller may read: read from what
// GET /v1/experiments shows, so that it changes when that does, for releases on public ticks.
type public struct {
	f   *front
	r   *http.Request
	all bool // also of experiments that are not public
}

var (
	descDecisions = prometheus.NewDesc("sotto_decisions_total",
		"Decisions that were issued. What a crash loses of them is issued again."+tellsUnits,
		[]string{"experiment", "arm"}, nil)
	descReleased = prometheus.NewDesc("sotto_released_decisions_total",
		"Decisions whose rewards, or defaults, are in a release."+tellsUnits,
		[]string{"experiment", "arm"}, nil)
	descMean = prometheus.NewDesc("sotto_released_mean",
		"The noisy mean of what was released."+tellsUnits, []string{"experiment", "arm"}, nil)
	descMetric = prometheus.NewDesc("sotto_released_metric_mean",
		"The noisy mean of a declared metric, in its own units, of what was released, and the ends of its interval."+
			tellsUnits, []string{"experiment", "metric", "arm", "value"}, nil)
	descLess = prometheus.NewDesc("sotto_released_metric_difference",
		"The noisy mean of a declared metric less that of the control, and the ends of its interval."+tellsUnits,
		[]string{"experiment", "metric", "arm", "value"}, nil)
	descGuard = prometheus.NewDesc("sotto_guard",
		"A guard: its bound, and of each arm the ends of its interval and whether the arm was surely past it (1) or not (0)."+
			tellsUnits, []string{"experiment", "metric", "side", "arm", "value"}, nil)
	descCell = prometheus.NewDesc("sotto_released_cell_mean",
		"The noisy mean of the reward in a cell of the decisions, in its own units, and the ends of its interval."+tellsUnits,
		[]string{"experiment", "cell", "arm", "value"}, nil)
	descCellLess = prometheus.NewDesc("sotto_released_cell_difference",
		"The noisy mean in a cell less that of the control, and the ends of its interval."+tellsUnits,
		[]string{"experiment", "cell", "arm", "value"}, nil)
	descBatches = prometheus.NewDesc("sotto_batches_total",
		"Batches that have ended, lines of the transcript, as of the last public tick."+tellsUnits,
		[]string{"experiment"}, nil)
	descState = prometheus.NewDesc("sotto_experiment_state",
		"1 for the state that an experiment is in."+tellsUnits, []string{"experiment", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (public) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDecisions, descReleased, descMean, descMetric, descLess, descGuard, descCell,
		descCellLess, descBatches, descState} {
		to <- d
	}
}

// listed are the experiments of all shares that this process writes.
func (f *front) listed(ctx context.Context) (all []serve.Info) {
	for _, of := range f.beside {
		if here, _, _ := of.Engine.Where(); here {
			all = append(all, of.Engine.List(ctx)...)
		}
	}
	return all
}

// Collect implements prometheus.Collector.
func (p public) Collect(to chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, kind prometheus.ValueType, x float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, x, labels...)
	}
	for _, info := range p.f.listed(p.r.Context()) {
		if !p.all && !info.Experiment.Public {
			continue
		}
		x, name := info.Experiment, info.Experiment.Name
		lo, hi := x.Range()
		for i, a := range info.Arms {
			arm := x.Arms[i].Name
			put(descDecisions, prometheus.CounterValue, float64(a.Decisions), name, arm)
			put(descReleased, prometheus.CounterValue, float64(a.Released), name, arm)
			if a.Released > 0 {
				put(descMean, prometheus.GaugeValue, lo+(hi-lo)*a.Sum/float64(a.Released), name, arm)
			}
		}
		if all := info.Measured(); all != nil {
			for _, m := range all.Each {
				for _, a := range m.Arms {
					gauges(put, descMetric, a.Mean, a.Interval, name, m.Name, a.Arm)
					gauges(put, descLess, a.Difference, a.DifferenceInterval, name, m.Name, a.Arm)
				}
			}
		}
		if all := info.Guards(); all != nil {
			for _, g := range all.Each {
				for _, a := range g.Arms {
					gauges(put, descGuard, nil, a.Interval, name, g.Metric, g.Side, a.Arm)
					put(descGuard, prometheus.GaugeValue, g.At, name, g.Metric, g.Side, a.Arm, "bound")
					past := 0.0
					if a.Past() {
						past = 1
					}
					put(descGuard, prometheus.GaugeValue, past, name, g.Metric, g.Side, a.Arm, "past")
				}
			}
		}
		if all := info.ByCell(); all != nil {
			for _, m := range all.Each {
				if m.Verdict == nil { // cells of metrics are many series; the page has them
					continue
				}
				for _, a := range m.Arms {
					gauges(put, descCell, a.Mean, a.Interval, name, m.Cell, a.Arm)
					gauges(put, descCellLess, a.Difference, a.DifferenceInterval, name, m.Cell, a.Arm)
				}
			}
		}
		put(descBatches, prometheus.CounterValue, float64(info.Batches), name)
		put(descState, prometheus.GaugeValue, 1, name, string(info.State))
	}
}

// gauges are an estimate and the ends of its interval, as far as they are known.
func gauges(put func(*prometheus.Desc, prometheus.ValueType, float64, ...string), d *prometheus.Desc,
	estimate *float64, within *[2]float64, labels ...string) {
	if estimate != nil {
		put(d, prometheus.GaugeValue, *estimate, append(labels, "estimate")...)
	}
	if within != nil {
		put(d, prometheus.GaugeValue, within[0], append(labels, "low")...)
		put(d, prometheus.GaugeValue, within[1], append(labels, "high")...)
	}
}

// metrics shows, in Prometheus's text, what the caller may know: without a key the public metrics
// of public experiments, with the scope read those of all, with metrics the private ones too.
func (f *front) metrics(w http.ResponseWriter, r *http.Request) {
	_, err := f.may(r, serve.ScopeMetrics)
	private, read := err == nil, err == nil
	if secret, _ := keyOf(r); secret != "" && !private {
		if _, err := f.may(r, serve.ScopeRead); err != nil {
			f.answerTo(w, r, err)
			return
		}
		read = true
	}
	shown := prometheus.NewPedanticRegistry()
	shown.MustRegister(public{f, r, read})
	if private && f.Metrics != nil {
		shown.MustRegister(f.private()...)
		shown.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	promhttp.HandlerFor(shown, promhttp.HandlerOpts{DisableCompression: true,
		ErrorLog: slog.NewLogLogger(f.Log.Handler(), slog.LevelError)}).ServeHTTP(w, r)
}

// private are the metrics of the service that tell who reported, or when.
func (f *front) private() []prometheus.Collector {
	return append(slices.Clone(f.Metrics.own),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sotto_queue",
			Help: "Requests that wait for a commit." + tellsWho},
			func() (n float64) {
				for _, of := range f.beside {
					n += float64(of.Engine.Queued())
				}
				return n
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sotto_clock_drift_seconds",
			Help: "How far the service's time is ahead of the clock, or behind it if negative." + tellsClock},
			func() float64 { return f.Engine.Drift().Seconds() }))
}
