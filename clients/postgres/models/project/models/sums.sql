{{ config(materialized='table') }}
SELECT name, sum(clicks) AS clicks FROM {{ ref('clicks') }} GROUP BY name
