{{ config(materialized='incremental', unique_key='name') }}
SELECT name, max(day) AS day, sum(clicks) AS clicks FROM {{ ref('clicks') }}
{% if is_incremental() %} WHERE day >= (SELECT max(day) FROM {{ this }}) {% endif %}
GROUP BY name
