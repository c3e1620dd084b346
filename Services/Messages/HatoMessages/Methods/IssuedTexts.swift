import HatoModel
import HatoStorage
import HatoTree

/// Texts that this service made itself and gets back: what cannot be one is told from one that is out of date, which
/// only a look at the store can tell.
enum IssuedTexts {
    static func checkEtag(_ text: String?, _ parameter: String) throws(RPCError) {
        guard let text, !SimpleHash.isEtag(text) else { return }
        throw .invalidArgument(
            parameter, reason: "invalid_etag",
            "An etag is what messages.get answers with etag: true, 28 characters of base64 or \"null_etag\" for nothing, "
                + "e.g. \"eMfSk0nU+CieTkCbO5r7cKNp7qU=\"")
    }

    static func checkEpoch(_ text: String?) throws(RPCError) {
        guard let text, !StoreEpoch.isEpoch(text) else { return }
        throw .invalidArgument(
            "epoch", reason: "invalid_epoch",
            "An epoch is the 32 digits that messages.listen and messages.follow answer with, "
                + "e.g. \"0123456789abcdef0123456789abcdef\"")
    }

    static func checkSnapshot(_ text: String?) throws(RPCError) {
        guard let text, !ExportSnapshots.isHandle(text) else { return }
        throw .invalidArgument(
            "snapshot", reason: "invalid_snapshot",
            "A snapshot is what the page before answered with, e.g. \"1-3w5e11264sgsf\"; the first page has none")
    }
}
