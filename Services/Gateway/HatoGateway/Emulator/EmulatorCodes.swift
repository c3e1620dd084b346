import HatoFirebase
import NIOConcurrencyHelpers

/// The codes of mails that an emulator keeps, for all event loops.
final class EmulatorCodes: Sendable {
    private let log: NIOLockedValueBox<OobCodeLog>

    init(max: Int) { log = NIOLockedValueBox(OobCodeLog(entriesMax: max)) }

    var all: OobCodeLog { log.withLockedValue { $0 } }

    func apply(_ effect: AccountResponse.Effect) { log.withLockedValue { $0.apply(effect) } }
}
