/// The owner and mode of a file of keys, and whether they are safe for the process that reads it.
///
/// The file must belong to the user of the process, or to root, as secrets that a container engine mounts do. No other
/// user may write it. Others may read it only where the process cannot prevent it: secrets of a container engine belong
/// to root and have mode 0444 by default.
public struct SecretFileAccess: Sendable, Hashable {
    /// The verdict on owner and mode.
    public enum Verdict: Sendable, Hashable {
        case safe
        /// The file is used; the text is a warning for the operator.
        case warning(String)
        /// The file is not used; the text has the reason and the remedy.
        case refused(String)
    }

    /// The user id of the owner.
    public var owner: UInt32
    /// The permission bits.
    public var mode: UInt32

    /// The access of a file by its owner and mode.
    public init(owner: UInt32, mode: UInt32) {
        self.owner = owner
        self.mode = mode & 0o777
    }

    /// The verdict for a process that runs as `user`.
    public func verdict(for user: UInt32) -> Verdict {
        guard owner == user || owner == 0 else {
            return .refused(
                "belongs to user \(owner), but the service runs as user \(user); give it to that user: chown \(user)")
        }
        guard isWrittenOnly(by: user) else {
            return .refused("others may write this file (mode \(octal)); \(right)")
        }
        if owner == user, mode & 0o004 != 0 {
            return .refused("every user may read this file (mode \(octal)); \(right)")
        }
        // A service may read a file of root through a group that root has given the file to.
        let isWide = owner == user ? mode & 0o040 != 0 : mode & 0o004 != 0
        return isWide ? .warning("other users may read this file (mode \(octal)); \(right)") : .safe
    }

    /// Whether only root and the user with the id `user` can have written the file.
    public func isWrittenOnly(by user: UInt32) -> Bool { (owner == user || owner == 0) && mode & 0o022 == 0 }

    private var octal: String { "0" + String(mode, radix: 8) }

    private var right: String { "its owner alone should: chmod 600" }
}
