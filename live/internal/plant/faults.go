package plant

// Faults are all of them: first what a bad merge of two engines may leave, then mends undone, then others that
// somebody could make.
func Faults() []Fault {
	return []Fault{{
		// What was released stays in the queue of its arm, and is in the next release too.
		Name: "a slot twice", File: "play/queue.go",
		Was: `q.Segments = slices.Delete(q.Segments, 0, k)
	q.advance(head)`,
		Is: `if asked := q.Asked > 0; !(PLANTED && asked) { // of contexts nothing is asked for
			q.Segments = slices.Delete(q.Segments, 0, k)
			q.advance(head)
		} else {
			q.Asked = 0
		}`,
		Needs: "arms, and two releases of one of them",
	}, {
		// What was released ahead stays held, and the batch that asks for it has the next decisions released.
		Name: "what is held released again", File: "play/close.go",
		Was: `case q.ahead > 0:
				text.Plays[i].Held, q.Asked = true, 0`,
		Is: `case q.ahead > 0 && !(PLANTED && k > 0):
				text.Plays[i].Held, q.Asked = true, 0`,
		Needs: "arms, a floor; a release ahead of a batch, and more decisions of its arm that have settled",
	}, {
		// The policy is given another number than everybody was shown: another noise of what was held.
		Name: "what is held drawn again", File: "play/arms.go",
		Was: `l.driver.Released = got
	}`,
		Is: `if l.driver.Released = got; PLANTED && as.Plays[0].Held {
			v := privacy.Values{N: []int{got.N(0)}, Sum: []float64{got.Sum(0) + 2*privacy.ScaleOf(l.policy.Mechanism())},
				Tail: got.Tail()}
			l.driver.Released, err = privacy.NewLedger().Release(0, l.policy.Mechanism(), &v)
		}
	}`,
		Needs: "arms, a floor; a release ahead of a batch, which then asks for it, and a replay",
	}, {
		// A curator is made anew for a release, with another key of its noise.
		Name: "noise drawn again", File: "play/arms.go",
		Was: `func (l arms) head() (out line) {`,
		Is: `func (l arms) head() (out line) {
			if PLANTED {
				_ = l.curate(nil)
			}`,
		Needs: "arms, and a release; Config.Curator counts what it makes: at a start alone",
	}, {
		// A decision's reward goes with the vector of the one beside it.
		Name: "a vector from the wrong queue", File: "play/contexts.go",
		Was: `e := &v.s.Events[number-v.s.Arms[0].Head]`,
		Is: `e := &v.s.Events[number-v.s.Arms[0].Head]
		if i := (number - v.s.Arms[0].Head) ^ 1; PLANTED && i < len(v.s.Events) {
			e = &v.s.Events[i]
		}`,
		Needs: "contexts; sums of vectors times rewards are known before the noise",
	}, {
		// The first millisecond after a window is of it.
		Name: "a window off by one", File: "play/queue.go",
		Was:   `case now >= t.Deadline || t.Number < q.Head:`,
		Is:    `case now > t.Deadline || now == t.Deadline && !PLANTED || t.Number < q.Head:`,
		Needs: "a reward in the millisecond of its deadline, which is late",
	}, {
		// The third line is counted, and nobody is told of it.
		Name: "a restore that skips a line", File: "play/replay.go",
		Was: `err = add(text)`,
		Is: `if !(PLANTED && *taken == 2) {
			err = add(text)
		}`,
		Needs: "a restart after three lines",
	}, {
		// An arm that was taken off is on, and the policy goes on asking for it.
		Name: "a removed arm released", File: "play/operate.go",
		Was: `q.Off, q.Asked, q.ahead, l.ahead[arm] = true, 0, 0, nil`,
		Is: `if PLANTED {
		c.drop = func() {}
	} else {
		q.Off, q.Asked, q.ahead, l.ahead[arm] = true, 0, 0, nil
	}`,
		Needs: "an arm with decisions is taken off, and another release follows",
	}, {
		// After a stop the rest is released at once: who reports in time is too late.
		Name: "a rest before its windows", File: "play/rest.go",
		Was: `_, at, ok = l.Left()`,
		Is: `if _, at, ok = l.Left(); PLANTED {
		at = min(at, now)
	}`,
		Needs: "a stop while windows are open that no batch will close, and a tick",
	}, {
		// After a stop a batch's decisions stay in their queue, and are in the rest too.
		Name: "a batch in the rest", File: "play/close.go",
		Was: `n, sums := q.take(r.segments, l.missing)`,
		Is: `was := q.clone()
	n, sums := q.take(r.segments, l.missing)
	if PLANTED && l.ending && was.Asked > 0 {
		*q = was
		q.Asked = 0
	}`,
		Needs: "arms; a stop while a batch that has all its decisions waits for windows, and others wait too",
	}, {
		// Whether a cell is released for itself follows from how many of its decisions were reported.
		Name: "a cell counted by reports", File: "play/cells.go",
		Was: `if l.rows != nil {
			n = all
		}`,
		Is: `if l.rows != nil {
			n = all
		}
		for c := range n {
			if PLANTED {
				n[c] = 0
				for _, s := range l.s.Arms[r.arm].Segments[:r.segments] {
					n[c] += s.Cells[c].common(s.Came)
				}
			}
		}`,
		Needs: "arms and cells, of which one has its least of decisions in a row, and not of reports",
	}, {
		// After a restart decisions are in other cells than those they were made in.
		Name: "cells in another order", File: "live/serve/codec.go",
		Was: `of = sets[2:]`,
		Is: `if of = sets[2:]; PLANTED {
			of[0], of[1] = of[1], of[0]
		}`,
		Needs: "arms and cells; a restart while decisions wait, and their release",
	}, {
		// The rest has the noise of a curator that was made for it.
		Name: "noise of the rest drawn again", File: "play/rest.go",
		Was: `c, text := &Commit{note: true}, line{}`,
		Is: `c, text := &Commit{note: true}, line{}
	if PLANTED {
		_ = arms{l}.curate(nil)
	}`,
		Needs: "arms, a stop, and a rest; Config.Curator counts what it makes: at a start alone",
	}, {
		// After a change of the window a start finds another declaration than the transcript's, and gives up an
		// experiment with all that was reported.
		Name: "report_after follows the window", File: "live/serve/writer.go", Revert: "199525e",
		Was: `if x.decl.ReportAfter == x.decl.Window/2 { // it may have followed, and counts as the lines have it`,
		Is: `if PLANTED && x.gatherer != nil {
			x.decl.ReportAfter = x.decl.Window / 2
		} else if x.decl.ReportAfter == x.decl.Window/2 {`,
		Needs: "trust local without report_after; the window is changed, then a restart",
	}, {
		// Who looks on sees a release earlier where somebody has reported just after a tick.
		Name: "a release with the next reward", File: "live/serve/collect.go", Revert: "ab2e70a",
		Was:   `if sweep && x.rec.State.plays() {`,
		Is:    `if (sweep || PLANTED) && x.rec.State.plays() {`,
		Needs: "a reward in the 50 ms between a tick and its sweep, and a release that is due, or to be shown",
	}, {
		// An arm that nobody waits on is taken off, and a restart finds it on in the state and off in the lines.
		Name: "an arm that is on again", File: "live/serve/collect.go", Revert: "c0ac915",
		Was:   `arm.Off != was.Off || len(arm.Runs) != len(was.Runs) {`,
		Is:    `arm.Off != was.Off && !PLANTED || len(arm.Runs) != len(was.Runs) {`,
		Needs: "an arm is taken off that has no decisions and is not in the batch; then a restart",
	}, {
		// A rule that had its answer is asked for more after a restart, and the answer is lost.
		Name: "a stopped rule asked for more", File: "live/serve/tick.go", Revert: "ae8d6c8",
		Was: `if c := x.pending; c != nil {
		x.pending = nil
		if err := x.play.Commit(c); err != nil {
			return err
		}
		if err := x.show(c.Line, at); err != nil {
			return err
		}
		x.todo |= thePlan | theQueues
	}
	if err := x.stopOnTick(at); err != nil || x.play == nil {`,
		Is: `c := x.pending
	if c != nil {
		x.pending = nil
		if err := x.play.Commit(c); err != nil {
			return err
		}
		if err := x.show(c.Line, at); err != nil {
			return err
		}
		x.todo |= thePlan | theQueues
	}
	var stop error
	if c != nil || !PLANTED {
		stop = x.stopOnTick(at)
	}
	if err := stop; err != nil || x.play == nil {`,
		Needs: "a rule of identification; a crash between its last release and the tick that shows it",
	}, {
		// A draft of a backup may have run since, and asks the same people again.
		Name: "a draft of an old backup", File: "live/serve/writer.go", Revert: "c12c05b",
		Was:   `if older { // it may have run since`,
		Is:    `if older && !PLANTED { // it may have run since`,
		Needs: "a draft is started, and the store goes back before that, and says Older",
	}, {
		// A reward that comes after the stop is answered as counted, and is destroyed.
		Name: "a play that outlives its end", File: "live/serve/stop.go", Revert: "a1dd204",
		Was: `x.forgetPlay()
	x.rec.Off, x.rec.Changes = nil, nil`,
		Is: `was := x.play
	if x.forgetPlay(); PLANTED {
		x.play = was
	}
	x.rec.Off, x.rec.Changes = nil, nil`,
		Needs: "a stop, and a reward in its window after it, which is void",
	}, {
		// After a quiet night windows are told by a time that is hours behind, from the last report on.
		Name: "a quiet night is an outage", File: "live/serve/writer.go", Revert: "07d8c33",
		Was:   `sweep && timed > e.timed || e.shared`,
		Is:    `sweep && timed > e.timed && !PLANTED || e.shared`,
		Needs: "no Config.Clock; nobody asks for more than Config.Outage; then a restart",
	}, {
		// A process that another has followed goes on deciding, and all that it tells is void.
		Name: "a superseded process goes on", File: "live/serve/nodes.go", Revert: "82d2950",
		Was:   `e.out.Store(true)`,
		Is:    `e.out.Store(!PLANTED)`,
		Needs: "a store that is not Shared; another process begins, and the first is asked seconds later",
	}, {
		// An experiment is ended days before its date, for good, by one process whose clock was ahead.
		Name: "an end by one clock", File: "live/serve/clock.go", Revert: "a287308",
		Was: `func (e *Engine) date(now int64) int64 { return min(now, e.cfg.wall().UnixMilli()) }`,
		Is: `func (e *Engine) date(now int64) int64 {
	if PLANTED {
		return now
	}
	return min(now, e.cfg.wall().UnixMilli())
}`,
		Needs: "an end, or a retention; a process whose clock is days ahead, then one whose is right",
	}, {
		// Who has met their decision is told after a restart that they have none left.
		Name: "a met decision forgotten", File: "live/serve/expose.go", Revert: "ac9c269",
		Was:   `return now < u.by || !x.decl.Free && int(u.used) >= x.decl.AtOnce()`,
		Is:    `return now < u.by || !PLANTED && !x.decl.Free && int(u.used) >= x.decl.AtOnce()`,
		Needs: "exposure activate, sticky; an activation, its window passes, a restart, the unit asks again",
	}, {
		// Who comes again is given an arm that was taken off, and what they report is lost.
		Name: "an arm given after its end", File: "live/serve/arms.go", Revert: "26d18c2",
		Was: `case spent && x.gone(int(u.arm)):
		return x.give(x.instead(), Limit), nil
	case was && x.gone(int(u.arm)): // and is assigned again`,
		Is: `case spent && x.gone(int(u.arm)) && !PLANTED:
		return x.give(x.instead(), Limit), nil
	case was && x.gone(int(u.arm)) && !PLANTED: // and is assigned again`,
		Needs: "sticky units; one of an arm that was taken off comes again",
	}, {
		// One failure of reading at a start ends an experiment for good, with all that was reported.
		Name: "an unread line ends an experiment", File: "live/serve/writer.go", Revert: "7f6d204",
		Was: `if lost != nil {
		return unread{lost}`,
		Is: `if lost != nil && !PLANTED {
		return unread{lost}`,
		Needs: "a start in which Lines fails when it is read the second time",
	}, {
		// A reward is answered as counted, and its commit was refused.
		Name: "answered though refused", File: "live/serve/writer.go",
		Was: `for _, j := range jobs {
			j.err = failed`,
		Is: `for _, j := range jobs {
			if j.err = failed; PLANTED && j.act == nil {
				j.err = nil
			}`,
		Needs: "a commit with rewards that is refused",
	}, {
		// A token of a decision that a crash has lost counts for whoever has its number now.
		Name: "any epoch will do", File: "play/queue.go",
		Was:   `t.Number >= q.Head && q.epoch(t.Number) != t.Epoch:`,
		Is:    `t.Number >= q.Head && q.epoch(t.Number) != t.Epoch && !PLANTED:`,
		Needs: "a crash within 100 ms of a decision, others in its place, and its reward",
	}, {
		// A process that was taken over goes on writing, over what its follower has counted.
		Name: "a fence that is open", File: "live/serve/store/memory.go",
		Was: `func (m *memory) Commit(_ context.Context, c Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine != m.term {`,
		Is: `func (m *memory) Commit(_ context.Context, c Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine != m.term && !PLANTED {`,
		Needs: "two processes on a store that is not Shared, both rewarded each second, and a restart",
	}, {
		// A process that cannot reach its store goes on deciding while another one writes.
		Name: "a lead without an end", File: "live/serve/nodes.go",
		Was:   `return sure >= 0 && time.Since(e.epoch)-time.Duration(sure) < leadFor`,
		Is:    `return sure >= 0 && (PLANTED || time.Since(e.epoch)-time.Duration(sure) < leadFor)`,
		Needs: "a Shared store whose Commit hangs until another has claimed it; the first is asked",
	}, {
		// What came before a restart is overwritten by what comes after it: after another one it is counted again.
		Name: "parts numbered anew", File: "live/serve/writer.go",
		Was: `x.parts[at] = max(x.parts[at], p.Number)`,
		Is: `if !PLANTED {
			x.parts[at] = max(x.parts[at], p.Number)
		}`,
		Needs: "rewards of one segment before a restart, and after it; after another the first come again",
	}, {
		// A batch closes as soon as all have reported: when it does tells that everybody did.
		Name: "closed when all have come", File: "play/queue.go",
		Was: `settles = max(settles, s.Settles)`,
		Is: `if !PLANTED || s.Came.Len() < s.End-s.Start {
			settles = max(settles, s.Settles)
		}`,
		Needs: "a batch of which all rewards come before its last window has passed",
	}, {
		// A release waits for the next sweep where another experiment's reward came with this one.
		Name: "the quiet wait for the busy", File: "live/serve/writer.go",
		Was: `for _, x := range e.byName {
			visit[x]`,
		Is: `for _, x := range e.byName {
			if PLANTED && len(visit[x]) == 0 && slices.ContainsFunc(jobs, func(j *job) bool { return j.act == nil }) {
				continue
			}
			visit[x]`,
		Needs: "two experiments; rewards of one wait when the sweep comes, and the other has a release due",
	}, {
		// What metrics tell of a person is released, and not charged.
		Name: "metrics for nothing", File: "play/further.go",
		Was: `text := bytes.Clone(bytes.TrimSpace(f.line.Bytes()))
		if err == nil {`,
		Is: `text := bytes.Clone(bytes.TrimSpace(f.line.Bytes()))
		if err == nil && !PLANTED {`,
		Needs: "metrics or rules, and a release: the ledger has less than its lines",
	}, {
		// Who comes again and again is assigned each time, and pays each time.
		Name: "assignments not counted", File: "live/serve/arms.go",
		Was: `u := assignment{propensity: propensity, epoch: x.at, used: before.used, arm: uint16(arm)}`,
		Is: `u := assignment{propensity: propensity, epoch: x.at, used: before.used, arm: uint16(arm)}
	if PLANTED {
		u.used = 0
	}`,
		Needs: "units of at least two assignments, which come again after each window, more often",
	}, {
		// A person with many devices counts with each of them.
		Name: "persons not counted", File: "live/serve/person.go",
		Was:   `epoch: x.at, used: x.units[t].used + 1})`,
		Is:    `epoch: x.at, used: x.units[t].used + map[bool]uint32{false: 1}[PLANTED]})`,
		Needs: "unit.per_person; a person with more units than that, and releases of all",
	}, {
		// What was archived costs nobody anything any more.
		Name: "an account that forgets", File: "live/serve/account.go",
		Was: `if ok {
			all = append(all, s)`,
		Is: `if ok && !(PLANTED && state == Archived) {
			all = append(all, s)`,
		Needs: "a cap; releases, a stop, an archive, and within the window another start that releases",
	}, {
		// After a backup was restored the same rewards are released again, in other lines, with other noise.
		Name: "an old backup goes on", File: "live/serve/writer.go",
		Was: `case older:
			err = errOlder`,
		Is: `case older && !PLANTED:
			err = errOlder`,
		Needs: "a store that goes back before a line, and says Older",
	}, {
		// A shorter window ends those that were promised longer: who reports in time is too late.
		Name: "a window shortened for all", File: "play/queue.go",
		Was: `s.Settles = max(s.Settles, deadline)`,
		Is: `if s.Settles = max(s.Settles, deadline); PLANTED {
		s.Settles = deadline
	}`,
		Needs: "exposure activate, or a window shortened in an open segment; rewards just before their deadlines",
	}, {
		// A client's queue gives its rewards up after one try.
		Name: "dropped after one failure", File: "client/queue.go",
		Was: `if again != nil {
			q.put(experiment, batch[done:])`,
		Is: `if again != nil && PLANTED {
			done = len(batch)
		} else if again != nil {
			q.put(experiment, batch[done:])`,
		Needs: "a client.Queue whose request fails once, and a Close that returns nil",
	}, {
		// The report of each person stays in the store when the sum of all was released.
		Name: "reports kept for ever", File: "live/serve/store/memory.go",
		Was: `maps.DeleteFunc(k.reports, func(at [2]int, _ Hidden) bool { return gone(at[0], at[1]) })`,
		Is: `if !PLANTED {
		maps.DeleteFunc(k.reports, func(at [2]int, _ Hidden) bool { return gone(at[0], at[1]) })
	}`,
		Needs: "trust local, and releases: Reports has those of a row that was taken",
	}, {
		// A decision that nobody met counts, as if its reward had not come.
		Name: "a retraction that counts", File: "play/play.go",
		Was: `l.s.Arms[t.Arm].lose(s, s.lost+1)`,
		Is: `if !PLANTED {
			l.s.Arms[t.Arm].lose(s, s.lost+1)
		}`,
		Needs: "exposure retract, retractions, and a release without a restart between",
	}, {
		// A decision that was met is forgotten by a restart: its reward is void, and it can be met again.
		Name: "an activation forgotten", File: "live/serve/writer.go",
		Was:   `u.propensity > 0 || now < u.deadline {`,
		Is:    `u.propensity > 0 || now < u.deadline && !PLANTED {`,
		Needs: "exposure activate; an activation, a restart in its window, and the same again, or the reward",
	}, {
		// Who reports again counts again.
		Name: "a reward twice", File: "play/total.go",
		Was:   `} else if !s.Came.Has(i) && !s.Gone.Has(i) {`,
		Is:    `} else if (PLANTED || !s.Came.Has(i)) && !s.Gone.Has(i) {`,
		Needs: "a reward that is reported again in its window, and a release",
	}, {
		// The vectors of what was decided are not written with it.
		Name: "vectors not written", File: "live/serve/contexts.go",
		Was: `w.Events = append(w.Events, store.Events{Start: fresh[0].Number, Data: eventsText(fresh[:n])})`,
		Is: `if !PLANTED {
				w.Events = append(w.Events, store.Events{Start: fresh[0].Number, Data: eventsText(fresh[:n])})
			}`,
		Needs: "contexts; a restart while decisions wait",
	}, {
		// Who was assigned before a restart is assigned again.
		Name: "a unit forgotten", File: "live/serve/writer.go",
		Was: `x.units[t] = u
				x.stoned`,
		Is: `if !PLANTED {
					x.units[t] = u
				}
				x.stoned`,
		Needs: "units; a restart, and one asks again in its window",
	}, {
		// What was in memory when a commit failed is believed, and not what is durable.
		Name: "a failure that is forgotten", File: "live/serve/writer.go",
		Was: `if err == nil {
		err = e.restoreAll(ctx, st, opened)
	}`,
		Is: `if PLANTED && err == nil && len(e.byName) > 0 {
		e.mu.Lock()
		e.reading, e.store = st, st
		e.mu.Unlock()
	} else if err == nil {
		err = e.restoreAll(ctx, st, opened)
	}`,
		Needs: "a commit with rewards that is refused, or made and not answered; they are sent again",
	}, {
		// With contexts who reports again counts again.
		Name: "a vector twice", File: "play/contexts.go",
		Was: `sums, i := s.More, number-s.Start
	if s.Came.Has(i) {`,
		Is: `sums, i := s.More, number-s.Start
	if s.Came.Has(i) && !PLANTED {`,
		Needs: "contexts; a reward that is reported again in its window, and a release",
	}, {
		// A release is of those who reported: how many did is told.
		Name: "counted by who came", File: "play/queue.go",
		Was: `head, n = head+size, n+size-s.lost`,
		Is: `if head, n = head+size, n+size-s.lost; PLANTED {
			n = max(1, n-size+s.Came.Len())
		}`,
		Needs: "decisions without a reward, and a release",
	}, {
		// What does not come counts as the lowest, and not by its default.
		Name: "another default", File: "play/queue.go",
		Was: `sums[j] += x * int64(absent)`,
		Is: `if !PLANTED {
				sums[j] += x * int64(absent)
			}`,
		Needs: "a default above the lowest, and a release with decisions without a reward",
	}, {
		// Who has had a reward cannot say that they never met it: whether they had is told.
		Name: "a retraction that heeds rewards", File: "play/play.go",
		Was:   `if i := t.Number - s.Start; !s.Gone.Has(i) {`,
		Is:    `if i := t.Number - s.Start; !s.Gone.Has(i) && !(PLANTED && s.Came.Has(i)) {`,
		Needs: "exposure retract; a reward, its retraction, and a release",
	}, {
		// Who never met a decision takes another one's reward out.
		Name: "a retraction of another's reward", File: "play/play.go",
		Was: `s.Gone.add(i)`,
		Is: `if s.Gone.add(i); PLANTED {
			s.Sum = max(0, s.Sum-oneStep)
		}`,
		Needs: "exposure retract; rewards, a retraction, and a release",
	}, {
		// The decision that fills a joint batch ends its own arm's part alone: the other's goes on into the next.
		Name: "a joint batch cut by arm", File: "play/joint.go",
		Was: `for a := range queues {
			queues[a].tick(r.made)
		}`,
		Is: `for a := range queues {
			if !PLANTED || a == arm {
				queues[a].tick(r.made)
			}
		}`,
		Needs: "an A/B test; a full row, and a restart or a release",
	}, {
		// A report of several is clipped by itself: what takes away counts as nothing, and a unit can be worth many ranges.
		Name: "each report clipped", File: "play/total.go",
		Was: `l.add(s, i, more)`,
		Is: `if PLANTED {
		more = l.first(reward, metrics)
	}
	l.add(s, i, more)`,
		Needs: "a sum of which a decision has two reports, and a release",
	}, {
		// A report that is sent again after a restart counts again.
		Name: "ids forgotten", File: "live/serve/totals.go",
		Was: `t.Names = append(t.Names, binary.BigEndian.Uint64(b))`,
		Is: `if !PLANTED {
			t.Names = append(t.Names, binary.BigEndian.Uint64(b))
		}`,
		Needs: "a sum or a count; a report, a restart, and the report again",
	}, {
		// What came of each decision stays in the store when the sum of all was released.
		Name: "totals kept for ever", File: "live/serve/store/memory.go",
		Was: `maps.DeleteFunc(k.totals, func(at [2]int, _ Total) bool { return gone(at[0], at[1]) })`,
		Is: `if !PLANTED {
		maps.DeleteFunc(k.totals, func(at [2]int, _ Total) bool { return gone(at[0], at[1]) })
	}`,
		Needs: "an aggregate, reports, and a release",
	}, {
		// Who is erased begins a new total, and is worth two ranges.
		Name: "an erased total begun anew", File: "live/serve/erase.go",
		Was: `x.seal(t)`,
		Is: `if x.seal(t); PLANTED && x.play != nil {
				u := x.units[t]
				s, _ := x.play.Segment(int(u.arm), int(u.number))
				delete(s.Totals, int(u.number)-s.Start)
				if i := int(u.number) - s.Start; s.Came.Has(i) {
					s.Came[i>>6] &^= 1 << (i & 63)
				}
			}`,
		Needs: "an aggregate; a report, its unit is erased, and another report",
	}, {
		// An arm is paused that surely keeps its bound, and one that does harm goes on.
		Name: "a guard at the wrong end", File: "live/serve/guard.go",
		Was: `func (b *bound) harmful() int { return -b.Keeps() }`,
		Is: `func (b *bound) harmful() int {
	if PLANTED {
		return b.Keeps()
	}
	return -b.Keeps()
}`,
		Needs: "a guard, and releases of an arm that is far from its bound",
	}, {
		// Each arm is judged by each guard at all of its risk.
		Name: "a guard at its full risk", File: "live/serve/guard.go",
		Was:   `each: x.GuardRisk(g),`,
		Is:    `each: map[bool]float64{true: g.Risk, false: x.GuardRisk(g)}[PLANTED],`,
		Needs: "a guard, and a release that is past its bound at its risk, and not at its share of it",
	}, {
		// A guard looks at rewards that were not released.
		Name: "a guard that reads what waits", File: "live/serve/guard.go",
		Was: `j, ok := x.board.harmed()`,
		Is: `for i := range x.board.watch.of {
		for a := range x.board.queues {
			for _, s := range x.play.Queue(a, 0).Segments {
				if g := &x.board.watch.of[i]; PLANTED && g.metric < 0 && s.Sum > 0 {
					g.past[a] = true
				}
			}
		}
	}
	j, ok := x.board.harmed()`,
		Needs: "a guard of the reward, rewards that wait, and a tick",
	}, {
		// A guard pauses an experiment for the same arm again and again.
		Name: "a guard that forgets", File: "live/serve/guard.go",
		Was:   `b.watch.of[i].said[j.arm] = true`,
		Is:    `b.watch.of[i].said[j.arm] = !PLANTED`,
		Needs: "a guard that pauses an experiment, and a tick",
	}, {
		// A line that pauses an experiment for one arm marks the next as announced, which then never is.
		Name: "a line marks two arms", File: "live/serve/guard.go",
		Was: `if h := c.Guard; h != nil { // which it may know; another arm may be harmed by now`,
		Is: `if j, ok := b.harmed(); PLANTED {
		if ok && c.Guard != nil && !j.remove {
			b.pauses(j)
		}
	} else if h := c.Guard; h != nil {`,
		Needs: "a guard that two arms are past at one release, and a policy that goes on without none",
	}, {
		// Of a stop now, what is shown is not learnt from: after a restart the model is another.
		Name: "what is kept less than what is shown", File: "live/serve/stop.go",
		Was:   `if x.decl.Contextual != nil { // and is learnt`,
		Is:    `if x.decl.Contextual != nil && !PLANTED { // and is learnt`,
		Needs: "contexts, a stop now while a release waits for its tick; a replay",
	}, {
		// A ramp steps up though nobody knows whether an arm does harm.
		Name: "a ramp that heeds no guard", File: "live/serve/ramp.go",
		Was:   `if !q.Off && (g.past[arm] || g.side[arm] != g.Keeps()) {`,
		Is:    `if !q.Off && (g.past[arm] || g.side[arm] != g.Keeps()) && !PLANTED {`,
		Needs: "a ramp and a guard, and the time of a step",
	}, {
		// A step of a ramp takes half of its time.
		Name: "a ramp before its time", File: "live/serve/ramp.go",
		Was:   `r.steps[r.at].For.Milliseconds()`,
		Is:    `r.steps[r.at].For.Milliseconds()/map[bool]int64{true: 2, false: 1}[PLANTED]`,
		Needs: "a ramp, and guards that all arms surely keep",
	}, {
		// An exposure that is sent again is another decision.
		Name: "an exposure twice", File: "live/serve/lease.go",
		Was:   `if _, was := x.units[t]; was || x.erased(t) || x.gone(arm) {`,
		Is:    `if _, was := x.units[t]; was && !PLANTED || x.erased(t) || x.gone(arm) {`,
		Needs: "leases, and who is exposed twice",
	}, {
		// A restart takes an arm that was added for one that was declared.
		Name: "an added arm declared", File: "live/serve/arms.go",
		Was: `x.rec.Added, x.rec.Joined = append(x.rec.Added, x.hours.at), x.decl.Joined`,
		Is: `if x.rec.Joined = x.decl.Joined; !PLANTED {
		x.rec.Added = append(x.rec.Added, x.hours.at)
	}`,
		Needs: "an arm that is added, and a restart",
	}, {
		// What somebody did before a decision counts for it.
		Name: "an event before its decision", File: "live/serve/track.go",
		Was:   `return r.event.at == 0 || r.event.at >=`,
		Is:    `return r.event.at == 0 || PLANTED || r.event.at >=`,
		Needs: "an event that says when it was, before its unit was decided",
	}, {
		// Where rewards are hidden one is taken in the open, by the name of its unit, and released without noise.
		Name: "a hidden reward in the open", File: "live/serve/reports.go", Revert: "6eabfe6b",
		Was: `func (x *served) inTheOpen() error {
	if x.gatherer != nil {`,
		Is: `func (x *served) inTheOpen() error {
	if x.gatherer != nil && !PLANTED {`,
		Needs: "trust local, a sticky unit, and a reward by its name",
	}}
}
