import HatoModel

/// The e-mail of a thread that is being sent to a device, or was sent last.
///
/// It has everything that waited in its lane up to a place. That is decided at the first attempt, so that a repetition
/// says the same under the same id; what comes later waits for the next e-mail.
struct DigestRecord: FieldObject, Hashable {
    /// The id of the e-mail: that of the delivery with which it began.
    var mail: String
    /// The place of the last delivery that it has.
    var throughVersion: UInt64
    var throughIndex: UInt32
    /// When it was made: it does not show what had expired by then.
    var madeAt: Int64
    var isSent: Bool
    /// When the thread may have its next e-mail; nil: it has had none.
    var nextAt: Int64?
    /// Whether it says no words: the server refused them, and may take a number.
    var isWithheld = false

    static let fields = Fields<Self>(
        blank: Self(mail: "", throughVersion: 0, throughIndex: 0, madeAt: 0, isSent: false),
        .required("mail", \.mail),
        .required("throughVersion", \.throughVersion),
        .required("throughIndex", \.throughIndex),
        .required("madeAt", \.madeAt),
        .flag("isSent", \.isSent),
        .optional("nextAt", \.nextAt),
        .flag("isWithheld", \.isWithheld))

    static func key(_ lane: Lane) -> RecordKey {
        RecordKey(.digest).with(lane.device).with(lane.collapseKey ?? "")
    }

    /// The lane of a row; nil when it is none.
    static func lane(of row: RecordKey) -> Lane? {
        var reader = RecordKeyReader(row.bytes)
        guard let device = reader.text(), let thread = reader.text() else { return nil }
        return Lane(device: device, collapseKey: thread, isDigest: true)
    }

    /// Whether the e-mail has a delivery.
    func covers(_ delivery: DeliveryRecord) -> Bool {
        (delivery.sequenceVersion, delivery.sequenceIndex) <= (throughVersion, throughIndex)
    }

    /// How long the thread waits at `now` for its next e-mail, in milliseconds since 1970; nil: it does not. Never
    /// longer than the pause, also when the clock was put back.
    func nextTime(at now: Int64, _ pace: DigestPace) -> Int64? {
        guard let nextAt, now < nextAt else { return nil }
        return min(nextAt, now + pace.pause)
    }
}

/// How often threads have e-mails, in milliseconds.
struct DigestPace: Sendable, Hashable {
    /// From the first notification of a thread to its e-mail.
    var wait: Int64
    /// From one e-mail of a thread to the next.
    var pause: Int64

    init(_ policy: DeliveryPolicy) {
        (wait, pause) = (policy.digestWait.milliseconds, policy.digestPause.milliseconds)
    }
}
