import HatoModel

/// What decides, beside its times, when a delivery may go and with which others it goes as one.
struct Pacing: FieldObject, Hashable {
    /// The thread of its notification.
    var thread: String?
    /// Whether its device has a person in front of it: those of servers are not held back.
    var isPaced: Bool
    /// Why quiet windows do not concern it.
    var passing: Passing?
    /// When it has its turn at its device; nil: it has not asked for one.
    var turn: Int64?
    /// How many others went into it.
    var merged: Int?
    /// It has its turn, and goes without those that came since.
    var isNext: Bool?
    /// When it has its turn at its user, once it has had that at its device; nil: it has not asked for one.
    var userTurn: Int64?
    /// How many of those that went into it are of other threads than its own, as far as known: one that went into it
    /// and counted others of this thread is of another thread with all of them. Nil: none went into it, or they did in
    /// an earlier version, which did not say where they went.
    var ofOtherThreads: Int?
    /// Its own words are not to be shown, and it counts as none: it was taken back, read or replaced, or its thread is
    /// muted.
    var isTakenBack: Bool?
    /// The id of the delivery that it went into.
    var wentInto: String?

    /// Deliveries that quiet windows do not concern have lanes of their own, in which none waits for the end of one.
    enum Passing: String, FieldChoice {
        /// Nothing of it is shown.
        case silent
        case timeSensitive
    }

    static let fields = Fields<Self>(
        blank: Self(isPaced: false),
        .optional("thread", \.thread),
        .required("isPaced", \.isPaced),
        .optional("passing", \.passing),
        .optional("turn", \.turn),
        .optional("merged", \.merged),
        .optional("isNext", \.isNext),
        .optional("userTurn", \.userTurn),
        .optional("ofOtherThreads", \.ofOtherThreads),
        .optional("isTakenBack", \.isTakenBack),
        .optional("wentInto", \.wentInto))

    init(thread: String? = nil, isPaced: Bool, passing: Passing? = nil) {
        (self.thread, self.isPaced, self.passing) = (thread, isPaced, passing)
    }

    /// Of a delivery of a notification; nil when there is nothing to say.
    init?(_ new: NewNotification, on platform: Notifier.Platform) {
        let isPaced = platform.showsUser
        let passing: Passing? =
            if !isPaced { nil } else if !new.shown.isShown(on: platform) { .silent } else {
                new.options?.interruptionLevel?.passesQuietWindows == true ? .timeSensitive : nil
            }
        guard new.options?.thread != nil || passing != nil else { return nil }
        self.init(thread: new.options?.thread, isPaced: isPaced, passing: passing)
    }

    /// Whether it and others of its thread can go as one: those that interrupt alike.
    var mergingThread: String? { isPaced && passing != .silent ? thread : nil }

    /// The same with the turns of another one, or without any.
    func with(turnsOf other: Pacing?) -> Pacing {
        var pacing = self
        (pacing.turn, pacing.userTurn) = (other?.turn, other?.userTurn)
        return pacing
    }

    /// When it has both turns; the end of time as long as it has not asked for both.
    var goesAt: Int64 { max(turn ?? .max, userTurn ?? .max) }

    /// The same with more that went into it: so many of what another one shows.
    func merging(_ count: Int, of other: Pacing?) -> Pacing {
        guard count > 0 else { return self }
        var pacing = self
        pacing.merged = (merged ?? 0) + count
        let ofOthers = other?.thread == thread ? min(count, other?.ofOtherThreads ?? 0) : count
        pacing.ofOtherThreads = (ofOtherThreads ?? 0) + ofOthers
        return pacing
    }

    /// The same as one that went into another delivery. `isCounted`: not only what went into it before, but itself.
    func gone(into id: String, isCounted: Bool = true) -> Pacing {
        var pacing = self
        pacing.wentInto = id
        return isCounted ? pacing : pacing.takenBack
    }

    /// The same without its own words.
    var takenBack: Pacing {
        var pacing = self
        pacing.isTakenBack = true
        return pacing
    }

    /// The same when one of a thread that went into it counts no more.
    func without(oneOf thread: String?) -> Pacing {
        guard let merged, merged > 0 else { return self }
        let ofOthers = ofOtherThreads ?? 0
        // Those of a muted thread went already.
        if isTakenBack == true, thread == self.thread, merged <= ofOthers { return self }
        var pacing = self
        pacing.merged = merged - 1
        if ofOthers > 0, thread != self.thread || merged <= ofOthers { pacing.ofOtherThreads = ofOthers - 1 }
        return pacing
    }

    /// The same for those of other threads alone; nil: it counts none.
    var ofOthersAlone: Pacing? {
        guard let ofOtherThreads, ofOtherThreads > 0 else { return nil }
        var pacing = takenBack
        pacing.merged = ofOtherThreads
        return pacing
    }

    /// The same; whether it goes without those that come from now on.
    func with(isNext: Bool) -> Pacing {
        var pacing = self
        pacing.isNext = isNext ? true : nil
        return pacing
    }

    /// How many notifications it shows.
    var count: Int { (merged ?? 0) + (isTakenBack == true ? 0 : 1) }

    /// Whether it can go for others, without its own words that a receiver refused.
    var goesWithoutWords: Bool { merged ?? 0 > 0 && isTakenBack != true }

    /// Whether it stays for others, of which is known that they went into it, when its own words do not.
    var staysForOthers: Bool { ofOtherThreads != nil && merged ?? 0 > 0 }
}

extension Notifier.InterruptionLevel {
    var passesQuietWindows: Bool {
        switch self {
        case .timeSensitive, .critical: true
        case .passive, .active: false
        }
    }
}
