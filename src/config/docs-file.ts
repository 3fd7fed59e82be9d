/** The part of docs/configuration.md about files; a test reads its examples as configuration. */
export const FILE_SECTION = `## A configuration file

The tree of the constructor: scopes by name, the options of each below it, under the names of the column "in code and in a file", lengths of time in milliseconds. Settings of the whole process stand below \`process\`.

\`\`\`yaml
scopes:
  LLM:
    sources:
      - &qwen
        name: qwen_1
        baseUrl: http://127.0.0.1:8080/v1
        apiKey: \${QWEN_API_KEY} # from the environment or .env
        model: qwen3-8b
        rpm: \${QWEN_RPM:-600} # with a default
        timeoutMs: 60000
      - <<: *qwen # the same, but for these
        name: qwen_2
        apiKey: \${QWEN_API_KEY_2}
      - name: glm_1
        baseUrl: https://open.bigmodel.cn/api/paas/v4
        apiKeyFile: secrets/glm.key # a file with the key alone
        model: glm-4.7
    retry:
      maxAttempts: 3
    failover: off
process:
  telemetryBackends: [sqlite]
  sqlitePath: ./polygateway.db
  pricingPath: ./prices.json
\`\`\`

- **YAML 1.2 or, with the ending \`.json\`, strict JSON**, in UTF-8, at most 512 KiB. \`on\`, \`off\`, \`yes\` and \`no\` are words, quoted or not; a flag takes them like \`true\` and \`false\`. Anchors, aliases and merge keys (\`<<\`) work; what a mapping says itself wins. Tags, several documents, keys given twice and unknown keys are errors.
- **\`\${NAME}\`** in a value is filled from the environment and \`.env\`, \`\${NAME:-default}\` has a default for an unset or empty variable, \`$$\` is one \`$\`. A missing variable is an error. What a variable holds is never read as YAML. It is read by the kind of its option, so \`rpm: \${RPM}\` is a number; inside \`extraBody\` an unquoted \`\${NAME}\` alone is read as if its value stood there, a quoted one is text. Inside \`{ }\` and \`[ ]\` put it in quotes. Only the scope in use needs its variables.
- **Secrets** stay out of the file by \`\${NAME}\` or by \`apiKeyFile\`, the path of a file with the key alone (likewise for the other secrets).
- **Relative paths** in the file start at the file's own folder. The default \`./polygateway.db\` starts at the current folder. \`report\`, \`trace\`, \`reconcile\` and \`telemetry prune\` read the telemetry that the configuration names, unless \`--db\` names another file.
- **A file of one scope** may also hold the options of the constructor at the top (\`scope\`, \`sources\`, \`retry\`, …), with \`process\` beside them.
- **What exists only in code** (\`governor\`, \`runtime\`, recorders, …) is given as an override: \`GatewayClient.fromConfig("polygateway.yaml", "LLM", { overrides: { governor } })\`.
- **Every problem comes at once**, as \`polygateway.yaml:9 scopes.LLM.sources[0].rpm\`: file, line, option.

Commands take \`--config FILE\`; without it they use \`polygateway.yaml\`, \`polygateway.yml\` or \`polygateway.json\` of the current folder, if there is one. **A file is the whole configuration**: nothing is mixed with \`{SCOPE}__…\` and \`PGW_…\` in the environment, which then only fill \`\${…}\`. \`polygateway check\` says which file is in force and names the settings in the environment that are not read; so does every other command.`;
