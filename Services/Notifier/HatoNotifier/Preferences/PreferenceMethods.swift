import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `notifier.preferences.…`: what users want of notifications.
struct PreferenceMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Preferences.Get.self, in: &router) { methods, request, context in
            try await methods.preferences(of: try methods.owner(context.caller, named: request.uid))
        }
        handle(Notifier.Preferences.Set.self, in: &router) { methods, request, context in
            try await methods.set(request, context.caller)
        }
    }

    private func preferences(of uid: String) async throws -> Notifier.UserPreferences {
        let now = configuration.time.now()
        return try await store.read { snapshot in
            let reading = PreferenceReading(snapshot)
            let record = try reading.record(of: uid) ?? PreferencesRecord.fields.blank
            return record.shown(with: try reading.mutes(of: uid).filter { !$0.hasEnded(at: now) })
        }
    }

    private func set(
        _ request: Notifier.Preferences.Set, _ caller: Caller
    ) async throws -> Notifier.UserPreferences {
        let uid = try owner(caller, named: request.uid)
        try checks.preferences(request)
        var rows = PreferenceRows(uid: uid, mutesMax: configuration.limits.mutesMax)
        if case .user(let user) = caller { rows.isOfAccount = user.session != nil }
        try await outbox.change { [rows, authenticator = service.authenticator] draft in
            // The user may be gone by now: no event would remove the rows any more.
            if case .user(let user) = caller, authenticator.hasEnded(user) { throw TokenError.revoked.rpcError }
            try rows.replace(by: request, in: &draft)
        }
        // Also when they are the same: the process may have ended before, and this request is its repetition.
        if request.quiet != nil || request.timeZone != nil { try await QuietEnds(outbox: outbox).change(of: uid) }
        return try await preferences(of: uid)
    }

    /// Whose preferences are meant: the caller's; an administrator names the user.
    private func owner(_ caller: Caller, named uid: String?) throws -> String {
        switch caller {
        case .administrator:
            guard let uid else {
                throw RPCError.invalidParams("uid", "The administrator key has no preferences; name the user with uid")
            }
            try checks.key(uid, "uid", bytesMax: configuration.limits.uidBytesMax)
            return uid
        case .user(let user):
            guard uid == nil || uid == user.uid else { throw NotifierError.foreignUser }
            return user.uid
        case .nobody, .variable, .service: throw RPCError.missingCredential
        }
    }
}

extension RequestChecks {
    /// What a user wants of notifications; days, times and platforms were read already.
    func preferences(_ request: Notifier.Preferences.Set) throws(RPCError) {
        if let zone = request.timeZone?.value {
            try timeZone(zone)
        }
        if let windows = request.quiet?.value {
            guard windows.count <= limits.quietWindowsMax else {
                throw .invalidArgument(
                    "quiet", reason: "invalid_quiet", "quiet has at most \(limits.quietWindowsMax) windows")
            }
            for (index, window) in windows.enumerated() where window.days.isEmpty || window.days.count > 7 {
                throw .invalidArgument(
                    "quiet.\(index).days", reason: "invalid_quiet", "A window has 1 to 7 days, e.g. mon")
            }
        }
        for thread in (request.mutes?.value ?? [:]).keys.sorted() { try key(thread, "mutes") }
    }

    /// The time zone of a device; nil when it is not known here: a phone may know newer ones, and is registered all the
    /// same.
    func known(timeZone name: String) -> String? {
        guard (try? key(name, "timeZone")) != nil, ZoneClock(zone: name) != nil else { return nil }
        return name
    }

    /// The name of a time zone.
    func timeZone(_ name: String) throws(RPCError) {
        try key(name, "timeZone")
        guard ZoneClock(zone: name) != nil else {
            throw .invalidArgument(
                "timeZone", reason: "invalid_time_zone",
                "timeZone is an IANA time zone, Area/City or UTC, e.g. Asia/Tokyo")
        }
    }
}
