extension TreeQuery {
    /// The members of a query (protocol §5); a bound is a value, or `{"value", "key"}` to settle ties.
    public static let schema: JSONObject = [
        "type": "object",
        "properties": [
            "orderBy": [
                "type": "string",
                "description":
                    """
                The order: `$key`, `$value`, `$priority` or a child path such as `date` or `author/name`; \
                required if the query has another member
                """,
            ],
            "startAt": bound("Lower bound, inclusive. Not together with `startAfter` or `equalTo`"),
            "startAfter": bound("Lower bound, exclusive. Not together with `startAt` or `equalTo`"),
            "endAt": bound("Upper bound, inclusive. Not together with `endBefore` or `equalTo`"),
            "endBefore": bound("Upper bound, exclusive. Not together with `endAt` or `equalTo`"),
            "equalTo": bound("Selects the children with this value. Not together with another bound"),
            "limitToFirst": limit("first"), "limitToLast": limit("last"),
        ],
        "additionalProperties": false,
    ]

    private static func bound(_ meaning: String) -> JSONValue {
        let kinds = """
            A string, number, boolean or null; with `orderBy: "$key"` a key; or `{"value": …, "key": …}`, where `key` \
            decides among children with equal values
            """
        return ["description": .string("\(meaning). \(kinds)")]
    }

    private static func limit(_ end: String) -> JSONValue {
        [
            "type": "integer", "minimum": 1, "maximum": .number(Double(TreeLimits.queryLimitMax)),
            "description": .string(
                "The maximum number of children, counted from the \(end) one: 1 to 1,000,000. Not together with the other limit"
            ),
        ]
    }
}
