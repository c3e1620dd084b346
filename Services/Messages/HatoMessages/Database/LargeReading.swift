import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// A read that has outgrown what it may take without a reservation, and runs again when memory is reserved for it: such
/// reads take turns, so that short reads always find a thread.
///
/// The first reservation may be less than that of the largest response. It allows as many more rows as it allows more
/// bytes; a read that outgrows it as well begins again with the next.
struct LargeReading<Request: RPCRequest>: Sendable {
    /// Of a read that stops when its connection has closed.
    var view: ReadView
    var store: any Store
    var reply: RPCReply<Request>
    var body: @Sendable (ReadView) throws -> Void
    /// Called when there is a response, or none is needed any more.
    var answered: @Sendable () -> Void
    var watch: OperationWatch?
    /// What it may take without a reservation, in bytes of its result and in rows.
    var unreservedMax: Int
    var rowsMax: Int

    /// Runs the read when memory is reserved; never when the connection closes first.
    ///
    /// A read with the largest reservation is a long one, one with a smaller reservation a short one. Both are reads of
    /// the service itself, so that they do not wait once more for their client's turn: the budget has granted
    /// reservations to few reads at a time, clients in turn.
    ///
    /// - Parameter needsLargest: whether it reads so many rows that a smaller reservation would be of no use, or would
    ///   keep short reads waiting.
    func begin(needsLargest: Bool) {
        reply.readAgain(needsLargest: needsLargest) { reservation in
            let isLong = reservation.resultBytesMax >= view.bytesMax
            store.submitRead(of: nil, isLong: isLong) { run(in: reservation) }
        }
    }

    private func run(in reservation: ReadReservation) {
        let bytesMax = reservation.resultBytesMax
        let (rows, areMany) = rowsMax.multipliedReportingOverflow(by: bytesMax / max(1, unreservedMax))
        let limited = view.limited(to: bytesMax, rowsMax: areMany ? .max : rows, watchedBy: watch)
        do { try body(limited) } catch is ConnectionClosed {} catch TreeError.tooBig
            where bytesMax < view.bytesMax
        {
            begin(needsLargest: true)
            return reservation.readEnded()
        } catch { reply.refuse(error) }
        reservation.readEnded()
        answered()
    }
}
