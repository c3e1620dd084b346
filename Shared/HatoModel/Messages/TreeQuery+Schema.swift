extension TreeQuery: JSONSchemaProviding {
    /// The members of a query (protocol §5); a bound is a value, or `{"value", "key"}` to settle ties.
    public static let jsonSchema: JSONObject = [
        "type": "object",
        "properties": [
            "orderBy": ["type": "string"],
            "startAt": [:], "startAfter": [:], "endAt": [:], "endBefore": [:], "equalTo": [:],
            "limitToFirst": limit, "limitToLast": limit,
        ],
        "additionalProperties": false,
    ]

    private static let limit: JSONValue = [
        "type": "integer", "minimum": 1, "maximum": .number(Double(TreeLimits.queryLimitMax)),
    ]
}
