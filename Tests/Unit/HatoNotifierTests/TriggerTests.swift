import HatoModel
import Testing

@testable import HatoNotifier

@Suite struct TriggerTests {
    private let names = ["chat", "id"]

    private func change(before: JSONValue? = nil, after: JSONValue? = nil, uid: String? = "u1") -> FeedChange {
        FeedChange(
            pattern: "/chats/{chat}/messages/{id}", parameters: ["chat": "c1", "id": "m1"],
            path: "/chats/c1/messages/m1",
            type: .created, before: before, after: after, uid: uid)
    }

    private func filled(_ template: String, _ change: FeedChange) throws -> String {
        try Template(template, parameters: names).filled(with: change, toBytes: 4_096)
    }

    @Test func placesAreFilledFromTheChange() throws {
        let change = change(
            before: ["title": "古い"],
            after: ["senderName": "マスオ", "text": "ただいま 🍶", "deep": ["er": ["n": 3, "on": true, "x": 0.5]]])
        #expect(try filled("{after.senderName}さんからのメッセージ", change) == "マスオさんからのメッセージ")
        #expect(try filled("{chat}/{id} {path}", change) == "c1/m1 /chats/c1/messages/m1")
        #expect(try filled("{before.title}→{after.text}", change) == "古い→ただいま 🍶")
        #expect(try filled("{after.deep.er.n}{after.deep.er.on}{after.deep.er.x}", change) == "3true0.5")
        #expect(try filled("{{{chat}}} a}}b{{", change) == "{c1} a}b{")
        #expect(try filled("", change).isEmpty)
    }

    @Test func whatIsMissingIsFilledWithNothing() throws {
        let change = change(after: ["text": nil, "object": ["a": 1], "list": [1]])
        for place in [
            "{after.text}", "{after.object}", "{after.list}", "{after.no}", "{after.object.a.b}", "{before.x}",
            "{after}",
        ] {
            #expect(try filled("[\(place)]", change) == "[]")
        }
        #expect(try filled("{after}", self.change(after: "leaf")) == "leaf")
        #expect(try filled("{after.text}", self.change(after: ["text": [".value": "p", ".priority": 1]])) == "p")
    }

    @Test(arguments: [
        "{", "}", "{chat", "chat}", "{}", "{other}", "{after.}", "{after..x}", "{ chat}", "{Chat}", "{now}",
    ])
    func wrongTemplatesAreRefused(_ template: String) {
        #expect(throws: ArgumentError.self) { try Template(template, parameters: names) }
    }

    @Test func textsAreCutBetweenCharacters() {
        #expect("ただいま".cut(toBytes: 12) == "ただいま")
        #expect("ただいまよ".cut(toBytes: 14) == "ただい…")
        #expect("👨‍👩‍👧x".cut(toBytes: 10) == "…")
        #expect("abcdef".cut(toBytes: 5) == "ab…")
    }

    @Test func textThatNamesALongFieldManyTimesIsNotMadeWhole() throws {
        let change = change(after: ["text": .string(String(repeating: "a", count: 1_000))])
        let template = try Template(String(repeating: "{after.text}", count: 5_000), parameters: names)
        #expect(template.filled(with: change, until: 2_500).utf8.count == 3_000)
        #expect(template.filled(with: change, toBytes: 2_500) == String(repeating: "a", count: 2_497) + "…")
        #expect(template.filled(with: change, toBytes: 3).utf8.count == 3)
    }

    // MARK: Changes that hold a part

    @Test func whatAWholeNodeWasIsKnownFromWhatItIs() {
        var change = change(
            before: ["text": "old", "gone": 1, "deep": ["a": 1]],
            after: ["text": "new", "came": 2, "deep": ["a": nil, "b": 2]])
        change.type = .updated
        let node: JSONValue = ["text": "new", "came": 2, "deep": ["b": 2, "c": 3], "kept": true]
        #expect(change.completed(by: node).before == change.before)
        change.isPartial = true
        let whole = change.completed(by: node)
        #expect(whole.after == node)
        #expect(whole.before == ["text": "old", "gone": 1, "deep": ["a": 1, "c": 3], "kept": true])
        // Where every changed child came, or every one went, that side is null.
        change.before = .null
        change.after = ["came": 2, "deep": ["b": 2, "c": 3]]
        #expect(change.completed(by: node).before == ["text": "new", "kept": true])
        (change.before, change.after) = (["gone": 1, "deep": ["a": 1]], .null)
        #expect(
            change.completed(by: node).before == [
                "text": "new", "came": 2, "gone": 1, "deep": ["a": 1, "b": 2, "c": 3], "kept": true,
            ])
        change.type = .created
        #expect(change.completed(by: node).before == change.before)
    }

    // MARK: Whole triggers

    private func trigger(_ recipients: Notifier.Recipients = .init(uidsAt: "/chats/{chat}/members")) -> Notifier.Trigger
    {
        Notifier.Triggers.Set(
            id: "t1", pattern: "/chats/{chat}/messages/{id}", recipients: recipients,
            notification: .init(title: "{after.senderName}", body: "{after.text}")
        ).trigger
    }

    private func compiled(_ trigger: Notifier.Trigger) throws -> CompiledTrigger {
        try CompiledTrigger(trigger, limits: NotifierLimits())
    }

    @Test func textsThatAreAlwaysEmptyAreRefused() throws {
        var empty = trigger()
        empty.notification = .init(title: "", body: nil)
        let error = #expect(throws: RPCError.self) { try compiled(empty) }
        #expect(error?.data["reason"] == "empty_notification")
    }

    @Test func recipientsAreReadWhereTheTriggerSays() throws {
        func query(_ recipients: Notifier.Recipients, _ change: FeedChange) throws -> RecipientQuery? {
            try compiled(trigger(recipients)).recipients.query(change)
        }
        #expect(try compiled(trigger()).recipients.query(change())?.keys?.text == "/chats/c1/members")
        #expect(try query(.init(uids: ["u1"]), change())?.uids == ["u1"])
        #expect(try query(.init(uidsIn: "/chats/{chat}/ids"), change())?.values?.text == "/chats/c1/ids")
        #expect(try query(.init(uidField: "after.to"), change(after: ["to": "u2"]))?.uids == ["u2"])
        #expect(try query(.init(uidField: "after.to"), change(after: ["to": ""])) == nil)
        let token = Notifier.Recipients(tokenField: "after.token", platform: .fcm)
        #expect(try query(token, change(after: ["token": "t1"]))?.token == "t1")
        #expect(try query(token, change(after: ["token": ""])) == nil)
        var both = Notifier.Recipients(uidsIn: "/chats/{chat}/ids")
        (both.tokenAt, both.platform) = ("/users/{uid}/{chat}", .fcm)
        let found = try query(both, change())
        #expect(found?.tokenPath?.path(of: "u2")?.text == "/users/u2/c1" && found?.author == "u1")
        #expect(found?.tokenPath?.path(of: "u/2") == nil)
    }

    @Test func simpleRecipientsShareTheirLists() throws {
        func source(_ recipients: Notifier.Recipients) throws -> RecipientLists.Source? {
            try compiled(trigger(recipients)).source(change(after: ["to": "u2"]))
        }
        #expect(try source(.init(uids: ["u1"])) == .named(by: "t1"))
        #expect(try source(.init(uidsAt: "/m")) == .keys(of: TreePath("/m")))
        #expect(try source(.init(uidField: "after.to")) == .user("u2"))
        var several = Notifier.Recipients(uidsAt: "/m")
        several.uids = ["u1"]
        let (query, keys) = (try source(several), RecipientLists.Source.keys(of: try TreePath("/m")))
        #expect(query?.need != nil && query != keys)
    }

    @Test func theFirstPlaceThatIsNotEmptyIsTaken() throws {
        var change = change(after: ["a": "", "b": "二", "c": "三"])
        #expect(try filled("{after.a|after.b|after.c}!{after.a|after.no}", change) == "二!")
        #expect(try filled("{after.a|chat} {author.name|after.c}", change) == "c1 三")
        change.authorName = "マスオ"
        #expect(try filled("{author.name|after.c}", change) == "マスオ")
        for wrong in ["{after.a|}", "{|after.a}", "{after.a|other}", "{author}", "{author.uid}"] {
            #expect(throws: ArgumentError.self) { try Template(wrong, parameters: names) }
        }
    }

    @Test func optionsOfATriggerAreFilledOrStandAsTheyAre() throws {
        var set = trigger()
        var options = Notifier.DeliveryOptions()
        (options.thread, options.image, options.link) = ("room:{chat}", "{after.photo}", "https://example.com/{chat}")
        (options.badge, options.sound, options.priority) = (1, "default", .high)
        options.interruptionLevel = .timeSensitive
        set.options = options
        set.platforms = .init()
        set.platforms?.fcm = ["android": ["ttl": "1s"]]
        let commit = FeedCommit(version: 7, epoch: "e", time: 1_000, changes: [])
        let settings = CompiledTrigger.Settings(limits: NotifierLimits(), timeToLive: .seconds(60), now: 5_000)
        func new(_ photo: String) throws -> NewNotification? {
            let change = change(after: ["senderName": "a", "photo": .string(photo)])
            return try compiled(set).notification(for: change, in: commit, settings: settings)
        }
        let filled = try #require(try new("https://example.com/p.png"))
        #expect(filled.options?.thread == "room:c1" && filled.options?.image == "https://example.com/p.png")
        #expect(filled.options?.link == "https://example.com/c1" && filled.options?.badge == 1)
        #expect(filled.options?.sound == "default" && filled.options?.interruptionLevel == .timeSensitive)
        #expect(filled.platforms == set.platforms)
        for photo in ["http://example.com/p.png", "", "https://example.com/" + String(repeating: "p", count: 2_048)] {
            let options = try #require(try new(photo)).options
            #expect(options?.image == nil && options?.link != nil, "\(photo.prefix(30))")
        }
    }

    @Test func writtenIsEveryKindOfChange() throws {
        var set = trigger()
        set.on = [.written]
        for type in Notifier.ChangeType.allCases {
            var change = change()
            change.type = type
            #expect(try compiled(set).matches(change))
            set.on = [.deleted]
            #expect(try compiled(set).matches(change) == (type == .deleted))
            set.on = [.written]
        }
    }

    /// Messages would refuse to read there, for every change again.
    @Test func aFieldNamesNoPathThatHasNoKeys() throws {
        let compiled = try compiled(trigger(.init(uidsAt: "/groups/{after.group}")))
        #expect(compiled.recipients.query(change(after: ["group": "g"]))?.keys?.text == "/groups/g")
        for wrong in [".priority", "g/.priority", "a.b", "$"] {
            #expect(compiled.recipients.query(change(after: ["group": .string(wrong)])) == nil, "\(wrong)")
        }
    }

    @Test func onlyItsPatternAndTypesFire() throws {
        let compiled = try compiled(trigger())
        #expect(compiled.matches(change()))
        var other = change()
        other.type = .deleted
        #expect(!compiled.matches(other))
        other = change()
        other.pattern = "/chats/{chat}"
        #expect(!compiled.matches(other))
        other = change()
        other.isMany = true
        #expect(!compiled.matches(other))
    }

    @Test func aPartOfANodeIsCompletedOnlyWhenTheTextsNeedIt() throws {
        let compiled = try compiled(trigger())
        var partial = change(after: ["text": "x"])
        #expect(!compiled.needsWholeNode(partial))
        partial.isPartial = true
        #expect(compiled.needsWholeNode(partial))
        partial.after = ["text": "x", "senderName": "y"]
        #expect(!compiled.needsWholeNode(partial))
    }

    private func holds(_ trigger: Notifier.Trigger, _ change: FeedChange) throws -> Bool {
        try compiled(trigger).truth(change).fires
    }

    private func goesWithout(_ trigger: Notifier.Trigger, _ change: FeedChange) throws -> Bool {
        let compiled = try compiled(trigger)
        return compiled.goesWithout(change, compiled.truth(change))
    }

    /// Also when a value that it names is not known.
    @Test func aConditionThatNeedsTooMuchWorkDoesNotHold() throws {
        let text = JSONValue.string(String(repeating: "A", count: 2 << 20))
        var change = change(before: ["text": text], after: ["text": text])
        change.type = .updated
        var trigger = trigger()
        let long = (0..<10).map { "after.text.toLowerCase() == '\($0)'" }.joined(separator: " || ")
        trigger.when = long
        #expect(try !holds(trigger, change))
        change.isTruncated = true
        change.before = nil
        trigger.when = "before.kind == 'a' || \(long)"
        #expect(try !holds(trigger, change))
        trigger.when = "after.text.toLowerCase() != 'a'"
        #expect(try holds(trigger, change))
    }

    @Test func aConditionDecidesOverTheChangeItsPathAndItsAuthor() throws {
        func holds(_ condition: String, _ change: FeedChange) throws -> Bool {
            var trigger = trigger()
            trigger.when = condition
            return try self.holds(trigger, change)
        }
        let change = change(before: ["kind": "draft"], after: ["kind": "text"])
        for condition in [
            "after.kind == 'text'", "before.kind != after.kind", "chat == 'c1' && id == 'm1'", "type == 'created'",
            "path == '/chats/c1/messages/m1'", "uid == 'u1'",
        ] {
            #expect(try holds(condition, change), "\(condition)")
        }
        #expect(try !holds("after.kind == 'image'", change))
        #expect(try holds("uid == null", self.change(uid: nil)))
        #expect(try self.holds(trigger(), change))
    }

    @Test func aPartOfANodeIsCompletedWhenTheConditionNeedsIt() throws {
        var trigger = trigger()
        trigger.when = "before.kind != after.kind"
        var partial = change(before: ["text": "x", "kind": "a"], after: ["text": "x", "senderName": "y", "kind": "b"])
        partial.type = .updated
        partial.isPartial = true
        #expect(try !compiled(trigger).needsWholeNode(partial))
        partial.before = ["text": "x"]
        #expect(try compiled(trigger).needsWholeNode(partial))
    }

    @Test func aConditionThatCannotBeDecidedCountsAsTrue() throws {
        var trigger = trigger()
        trigger.when = "before.kind != after.kind"
        var change = change(after: ["kind": "text", "text": "x", "senderName": "y"])
        change.type = .updated
        #expect(try !goesWithout(trigger, change))
        change.isTruncated = true
        #expect(try holds(trigger, change) && goesWithout(trigger, change))
        // What the cut left is known.
        change.before = ["kind": "text"]
        #expect(try !holds(trigger, change))
        change.before = nil
        change.type = .created
        #expect(try holds(trigger, change) && !goesWithout(trigger, change))
        // What could not be read either.
        change.after = nil
        #expect(try holds(trigger, change) && goesWithout(trigger, change))
    }

    @Test func theNotificationIsNamedByPathVersionAndTrigger() throws {
        let commit = FeedCommit(version: 7, epoch: "e", time: 1_000, changes: [])
        let settings = CompiledTrigger.Settings(limits: NotifierLimits(), timeToLive: .seconds(60), now: 5_000)
        var set = trigger()
        set.data = ["chat": "{chat}", "kind": "message"]
        set.options = .init(ttlSeconds: 10, collapseKey: "room:{chat}")
        let change = change(after: ["senderName": "マスオ", "text": .string(String(repeating: "長", count: 5_000))])
        let new = try #require(
            try compiled(set).notification(for: change, in: commit, settings: settings))
        #expect(new.idempotency?.key == "default:/chats/c1/messages/m1@7/1000:t1")
        #expect(new.data == ["chat": "c1", "kind": "message"])
        #expect(new.collapseKey == "room:c1")
        #expect(new.expiresAt == 11_000)
        #expect((new.text.body ?? "").utf8.count <= 4_096 && new.text.body?.last == "…")
        let empty = try compiled(trigger()).notification(
            for: self.change(after: [:]), in: commit, settings: settings)
        #expect(empty == nil)
    }

    @Test func wrongTriggersAreRefusedByParameter() {
        func parameter(_ change: (inout Notifier.Trigger) -> Void) -> String? {
            var trigger = trigger()
            change(&trigger)
            do {
                _ = try compiled(trigger)
                return nil
            } catch { return (error as? RPCError)?.data["parameter"]?.string }
        }
        #expect(parameter { $0.on = [] } == "on")
        #expect(parameter { $0.notification = .init() } == "notification")
        #expect(parameter { $0.notification?.title = "{x}" } == "notification.title")
        #expect(parameter { $0.data = ["k": "{"] } == "data.k")
        #expect(parameter { $0.options = .init(collapseKey: "{no}") } == "options.collapseKey")
        #expect(parameter { $0.recipients.uidsAt = nil } == "recipients")
        #expect(parameter { $0.recipients = .init(uids: []) } == "recipients.uids")
        #expect(parameter { $0.recipients = .init(uidsAt: "members") } == "recipients.uidsAt")
        #expect(parameter { $0.recipients = .init(uidField: "to") } == "recipients.uidField")
        #expect(parameter { $0.recipients = .init(uidsIn: "ids") } == "recipients.uidsIn")
        #expect(
            parameter { $0.recipients = .init(tokenField: "token", platform: .fcm) } == "recipients.tokenField")
        #expect(
            parameter { $0.recipients = .init(tokenField: "after.token", platform: nil) } == "recipients.platform")
        #expect(
            parameter { $0.recipients = .init(tokenField: "after.token", platform: .webpush) }
                == "recipients.platform")
        #expect(parameter { $0.recipients.platform = .fcm } == "recipients.platform")
        #expect(parameter { $0.recipients.app = "a" } == "recipients.app")
        func token(_ path: String, _ change: (inout Notifier.Recipients) -> Void = { _ in }) -> String? {
            parameter { trigger in
                (trigger.recipients.tokenAt, trigger.recipients.platform) = (path, .fcm)
                change(&trigger.recipients)
            }
        }
        #expect(token("/users/{uid}/fcm_token") == nil)
        #expect(token("/users/fcm_token") == "recipients.tokenAt")
        #expect(token("users/{uid}") == "recipients.tokenAt")
        #expect(token("/users/{uid}") { $0.uidsAt = nil } == "recipients.tokenAt")
        #expect(token("/users/{uid}") { $0.tokenField = "after.token" } == "recipients.tokenAt")
        var link = Notifier.DeliveryOptions()
        link.link = "http://example.com"
        #expect(parameter { $0.options = link } == "options.link")
        #expect(parameter { $0.when = "after.kind" } == "when")
        #expect(parameter { $0.when = "other == 'x'" } == "when")
    }
}
