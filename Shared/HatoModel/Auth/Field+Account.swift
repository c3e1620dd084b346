/// The attributes of accounts in params.
extension Field {
    @inline(__always)
    static func username(_ path: Property<String?>) -> Field {
        .optional(
            "username", path,
            """
            The username: 3 to 32 of a-z, 0-9, `_` and `.`; upper case is stored as lower case. \
            `auth.signIn` accepts it instead of the e-mail address
            """, example: "masuo")
    }

    @inline(__always)
    static func displayName(_ path: Property<String?>) -> Field {
        .optional(
            "displayName", path,
            """
            The name that apps show for the user: 1 to 256 Unicode code points, not only white space, no control \
            characters; white space at both ends is removed
            """)
    }

    @inline(__always)
    static func photoUrl(_ path: Property<String?>) -> Field {
        .optional(
            "photoUrl", path,
            "The URL of a picture, or any other text for it: 1 to 2,048 bytes without control characters",
            example: "https://example.com/masuo.png")
    }

    @inline(__always)
    static func phoneNumber(_ path: Property<String?>) -> Field {
        .optional(
            "phoneNumber", path,
            "The phone number, in the form of E.164 and of no other account; nothing signs in with it",
            example: "+819012345678")
    }

    @inline(__always)
    static func password(_ path: Property<String?>, adding more: String = "") -> Field {
        .optional(
            "password", path,
            """
            The password, normalised with NFKC: at least 15 Unicode code points (setting \
            `password-length-min`; 6 in `hato-dev`), at most 4,096 bytes of UTF-8; common passwords, \
            repetitions, sequences and the user's own names are refused (`WEAK_PASSWORD`)\(more)
            """)
    }

    @inline(__always)
    static func label(_ path: Property<String?>) -> Field {
        .optional(
            "label", path,
            """
            The name of the device for `auth.sessions.list`: 1 to 100 Unicode code points without control \
            characters
            """, example: "マスオさんのiPhone")
    }
}
