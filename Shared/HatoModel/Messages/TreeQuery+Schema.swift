extension TreeQuery {
    /// The members of a query (protocol §5); a bound is a value, or `{"value", "key"}` to settle ties.
    public static let schema: JSONObject = [
        "type": "object",
        "properties": [
            "orderBy": [
                "type": "string",
                "description":
                    "The order: `$key`, `$value`, `$priority` or a child path such as `date`; required with any other member",
            ],
            "startAt": bound("The first value, included; not beside `startAfter`"),
            "startAfter": bound("The first value, left out"),
            "endAt": bound("The last value, included; not beside `endBefore`"),
            "endBefore": bound("The last value, left out"),
            "equalTo": bound("The only value; not beside the other bounds"),
            "limitToFirst": limit("first"), "limitToLast": limit("last"),
        ],
        "additionalProperties": false,
    ]

    private static func bound(_ meaning: String) -> JSONValue {
        ["description": .string("\(meaning): a primitive, or `{\"value\", \"key\"}` to settle ties by key")]
    }

    private static func limit(_ end: String) -> JSONValue {
        [
            "type": "integer", "minimum": 1, "maximum": .number(Double(TreeLimits.queryLimitMax)),
            "description": .string("At most so many children, the \(end) ones: 1 to 1,000,000; one of the two limits"),
        ]
    }
}
