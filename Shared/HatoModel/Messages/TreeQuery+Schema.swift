extension TreeQuery: JSONSchemaProviding {
    /// The members of a query (protocol §5); a bound is a value, or `{"value", "key"}` to settle ties.
    public static let jsonSchema: JSONObject = [
        "type": "object",
        "properties": [
            "orderBy": ["type": "string"],
            "startAt": [:], "startAfter": [:], "endAt": [:], "endBefore": [:], "equalTo": [:],
            "limitToFirst": ["type": "integer", "minimum": 1], "limitToLast": ["type": "integer", "minimum": 1],
        ],
        "additionalProperties": false,
    ]
}
