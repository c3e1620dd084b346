import HatoModel
import HatoRules

/// A trigger that was read and found right; decides, without looking at anything but the change, what is to be sent to
/// whom.
struct CompiledTrigger: Sendable {
    let trigger: Notifier.Trigger
    let pattern: FeedPattern
    let recipients: CompiledRecipients
    private let title: Template?
    private let body: Template?
    private let data: [String: Template]
    private let localized: LocalizedTemplates
    private let collapseKey: Template?
    private let thread: Template?
    private let image: Template?
    private let link: Template?
    private let condition: RulesPredicate?
    let patternText: String
    /// What its type asks; nil without a type, or while the type cannot be read.
    var typed: TypedContent?
    /// Where the counts of threads stand; nil: its notifications are counted.
    let badge: BadgePattern?

    /// Throws `RPCError` that names the parameter.
    init(_ trigger: Notifier.Trigger, limits: NotifierLimits) throws(RPCError) {
        self.trigger = trigger
        pattern = trigger.pattern
        patternText = pattern.description
        let names = pattern.parameterNames
        guard !trigger.on.isEmpty else {
            throw .invalidArgument(
                "on", reason: "invalid_trigger", "on names at least one of created, updated, deleted, written")
        }
        recipients = try CompiledRecipients(trigger.recipients, parameters: names, limits)
            .without(presentAt: trigger.presenceAt, parameters: names)
        title = try CompiledTrigger.template(trigger.notification?.title, "notification.title", names)
        body = try CompiledTrigger.template(trigger.notification?.body, "notification.body", names)
        localized = try LocalizedTemplates(trigger.localized, parameters: names)
        let hasTextOfType = trigger.notification == nil && trigger.type != nil
        guard hasTextOfType || title?.isEmpty == false || body?.isEmpty == false else {
            throw .invalidArgument(
                "notification", reason: "empty_notification", "A notification has a title, a body or both")
        }
        var data: [String: Template] = [:]
        for (name, text) in trigger.data ?? [:] {
            data[name] = try CompiledTrigger.template(text, "data.\(name)", names)
        }
        self.data = data
        collapseKey = try CompiledTrigger.template(trigger.options?.collapseKey, "options.collapseKey", names)
        thread = try CompiledTrigger.template(trigger.options?.thread, "options.thread", names)
        image = try CompiledTrigger.link(trigger.options?.image, "options.image", names)
        link = try CompiledTrigger.link(trigger.options?.link, "options.link", names)
        condition = try CompiledTrigger.condition(trigger.when, names)
        badge = try BadgePattern(trigger.badge, limits)
        try CompiledTrigger.check(trigger.withdrawOn)
    }

    /// What a condition can name besides what the pattern's wildcards stand for, which hide these (README).
    private static let names = ["after", "before", "path", "type", "uid"]

    private static func condition(_ text: String?, _ names: [String]) throws(RPCError) -> RulesPredicate? {
        guard let text else { return nil }
        do { return try RulesPredicate(text, names: names + CompiledTrigger.names) } catch {
            throw .invalidArgument(
                "when", reason: "invalid_condition",
                "when, line \(error.line), column \(error.column): \(error.message)")
        }
    }

    static func template(
        _ text: String?, _ parameter: String, _ names: [String]
    ) throws(RPCError) -> Template? {
        guard let text else { return nil }
        do { return try Template(text, parameters: names) } catch {
            throw .invalidArgument(parameter, reason: error.reason, error.message)
        }
    }

    private static func link(_ text: String?, _ parameter: String, _ names: [String]) throws(RPCError) -> Template? {
        let template = try template(text, parameter, names)
        guard let literal = template?.literal, !RequestChecks.isLink(literal) else { return template }
        throw RequestChecks.noLink(parameter)
    }

    // MARK: Deciding

    func matches(_ change: FeedChange) -> Bool {
        !change.isMany && change.pattern == patternText && trigger.on.contains { $0.includes(change.type) }
    }

    /// Whether the trigger's condition holds. It may depend on what the change lacks.
    func truth(_ change: FeedChange) -> RulesPredicate.Truth {
        guard let condition else { return .holds }
        let unknown = Set(conditionFields.filter { change.lacks($0) }.map(\.side.rawValue))
        return condition.truth(unknown: unknown) { name in
            if let key = change.parameters[name] { return .string(key) }
            return switch name {
            case "after": change.after
            case "before": change.before
            case "path": .string(change.path)
            case "type": .string(change.type.rawValue)
            case "uid": change.uid.map { .string($0) }
            default: nil
            }
        }
    }

    /// The fields of a change that the condition asks for.
    private var conditionFields: [FieldPath] {
        (condition?.memberPaths ?? []).compactMap { memberPath in
            guard let name = memberPath.first, !pattern.parameterNames.contains(name) else { return nil }
            return FieldPath.Side(rawValue: name).map { FieldPath(side: $0, keys: Array(memberPath.dropFirst())) }
        }
    }

    /// Whether the change holds too little, so that the whole node must be read to decide or to fill the texts.
    func needsWholeNode(_ change: FeedChange) -> Bool {
        guard change.isPartial || change.isTruncated, change.type != .deleted else { return false }
        return (textFields + recipientFields + conditionFields).contains { field in
            (field.side == .after || change.tellsWhatBecame) && field.text(in: change) == nil
        }
    }

    /// Whether the trigger goes without something that the change lacks: its condition is not decided, texts stay empty
    /// or recipients are not known.
    func goesWithout(_ change: FeedChange, _ truth: RulesPredicate.Truth) -> Bool {
        truth == .unknown || (textFields + recipientFields).contains { change.lacks($0) }
    }

    private var texts: [Template] {
        [title, body, collapseKey, thread, image, link].compactMap(\.self) + localized.templates + data.values
    }

    private var textFields: [FieldPath] { texts.flatMap(\.fields) }

    private var recipientFields: [FieldPath] { recipients.fields }

    /// Where the recipients are to be found; nil when there are none.
    func source(_ change: FeedChange) -> RecipientLists.Source? { recipients.source(change, of: trigger.id) }

    /// Whether a text names the author.
    var namesAuthor: Bool { texts.contains(where: \.namesAuthor) }

    /// The notification for a change of a commit, without recipients; nil when its texts come out empty, unless the
    /// change lacks them.
    func notification(for change: FeedChange, in commit: FeedCommit, settings: Settings) -> NewNotification? {
        let limits = settings.limits
        let text = Notifier.NotificationText(
            title: title?.filled(with: change, toBytes: limits.titleBytesMax),
            body: body?.filled(with: change, toBytes: limits.bodyBytesMax))
        let isEmpty = text.isEmpty && trigger.notification != nil
        guard !isEmpty || textFields.contains(where: { change.lacks($0) }) else { return nil }
        let timeToLive = RequestChecks(limits: limits)
            .timeToLive(trigger.options?.ttlSeconds, otherwise: settings.timeToLive)
        var new = NewNotification(
            recipients: .uids([]), text: text, createdAt: settings.now, expiresAt: commit.time + timeToLive)
        new.localized = localized.filled(with: change, limits)
        // The name of the type comes with the data.
        let typeBytes = trigger.type.map { $0.utf8.count + Notifier.PayloadType.typeField.utf8.count } ?? 0
        var room = limits.dataBytesMax - typeBytes
        var cut: [String] = []
        if let thread, !thread.isWhole(with: change, in: limits.keyBytesMax) { cut.append("thread") }
        for (name, template) in data.sorted(by: { $0.key < $1.key }) where room > 0 {
            // A value of a type that does not fit is not there: a part of it could be another one.
            let valueMax = trigger.type == nil ? max(3, room - name.utf8.count) : limits.dataBytesMax
            let value = template.filled(with: change, toBytes: valueMax)
            room -= name.utf8.count + value.utf8.count
            if !template.isWhole(with: change, in: valueMax) { cut.append("data.\(name)") }
            if room >= 0, trigger.type == nil || value.utf8.count < valueMax { new.data[name] = value }
        }
        // With a part of it missing it would take the place of notifications that it has nothing to do with.
        let isWhole = collapseKey?.fields.contains { change.lacks($0) } == false
        if isWhole { new.collapseKey = collapseKey?.filled(with: change, toBytes: limits.keyBytesMax) }
        if new.collapseKey?.first == SilentPushes.reserved { new.collapseKey = nil }
        new.options = options(for: change, limits, collapseKey: new.collapseKey)
        new.platforms = trigger.platforms
        new.category = trigger.category
        new.trigger = trigger.id
        new.path = change.path
        new.idempotency = idempotency(of: change, in: commit)
        new.cut = cut.isEmpty ? nil : cut
        (new.isCounted, new.isWithdrawable) = (badge == nil, isWithdrawable)
        new.content = trigger.content
        return new
    }

    private func options(
        for change: FeedChange, _ limits: NotifierLimits, collapseKey: String?
    ) -> Notifier.DeliveryOptions? {
        guard var options = trigger.options else { return nil }
        options.collapseKey = collapseKey
        options.thread = thread?.filled(with: change, toBytes: limits.keyBytesMax)
        if options.thread?.isEmpty == true { options.thread = nil }
        func link(_ template: Template?) -> String? {
            template.map { $0.filled(with: change, until: RequestChecks.linkBytesMax) }.flatMap {
                RequestChecks.isLink($0) ? $0 : nil
            }
        }
        options.image = link(image)
        options.link = link(self.link)
        return options
    }

    /// What makes a repetition of a firing known.
    func idempotency(of change: FeedChange, in commit: FeedCommit) -> NewNotification.Idempotency {
        .init(
            scope: "trigger",
            key: "\(trigger.database):\(change.path)@\(commit.version)/\(commit.time):\(trigger.id)", fingerprint: "")
    }

    struct Settings: Sendable {
        var limits: NotifierLimits
        var timeToLive: Duration
        var now: Int64
    }
}

extension FeedPattern {
    var parameterNames: [String] {
        segments.compactMap { if case .any(let name) = $0 { name } else { nil } }
    }
}

extension RulesPredicate.Truth {
    /// Whether a trigger with this condition fires. One that depends on what is unknown does: rather a message too many
    /// than one too few.
    var fires: Bool {
        switch self {
        case .holds, .unknown: true
        case .doesNotHold, .tooMuchWork: false
        }
    }
}
