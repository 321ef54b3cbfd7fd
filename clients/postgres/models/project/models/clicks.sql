{{ config(materialized='view') }}
SELECT name, clicks, day FROM {{ ref('ads') }} WHERE clicks >= 0
