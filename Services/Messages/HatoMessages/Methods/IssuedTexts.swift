import HatoModel
import HatoStorage
import HatoTree

/// Checks the form of etags, epochs and snapshot handles, which the service issues and clients send back. Whether one
/// is current is checked against the store.
enum IssuedTexts {
    static func checkEtag(_ text: String?, _ parameter: String) throws(RPCError) {
        guard let text, !SimpleHash.isEtag(text) else { return }
        throw .invalidArgument(
            parameter, reason: "invalid_etag",
            "'\(parameter)' must be an etag, as messages.get returns it with etag: true: 28 characters of base64, "
                + "or \"null_etag\" for no value, e.g. \"eMfSk0nU+CieTkCbO5r7cKNp7qU=\"")
    }

    static func checkEpoch(_ text: String?) throws(RPCError) {
        guard let text, !StoreEpoch.isEpoch(text) else { return }
        throw .invalidArgument(
            "epoch", reason: "invalid_epoch",
            "'epoch' must be the 32 hexadecimal digits that messages.listen and messages.follow return as epoch, "
                + "e.g. \"0123456789abcdef0123456789abcdef\"")
    }

    static func checkSnapshot(_ text: String?) throws(RPCError) {
        guard let text, !ExportSnapshots.isHandle(text) else { return }
        throw .invalidArgument(
            "snapshot", reason: "invalid_snapshot",
            "'snapshot' must be the snapshot of an earlier page, e.g. \"1-3w5e11264sgsf\"; the first page has none")
    }
}
